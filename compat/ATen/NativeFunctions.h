// at::native: kernels that are made of operators and may be called directly.
#pragma once
#include <ATen/Functions.h>

#include "lamella/api/composite.h"

namespace at::native {
using lamella::composite::contiguous;
}
