// Lists of types.
#pragma once
#include <c10/util/TypeList.h>
#include <torch/headeronly/lamella_names.h>

namespace torch::headeronly::guts {
using namespace c10::guts;
}
