// torch::headeronly::bit_cast.
#pragma once
#include <c10/util/bit_cast.h>
#include <torch/headeronly/lamella_names.h>

namespace torch::headeronly {
using c10::bit_cast;
}
