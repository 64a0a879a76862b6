// at::vec::Vectorized.
#pragma once
#include <c10/lamella_names.h>

#include "lamella/kernels/cpu/vectorized.h"

namespace at::vec {
using namespace lamella::vec;
}
