// The families of operators that move elements: each registers those that have kernels.
#pragma once
#include "lamella/cuda/backend.h"

namespace lamella::cuda {

void register_index(Library& aten);

}  // namespace lamella::cuda
