// Pointwise operators, copies and fills by kernels of the device.
#pragma once
#include "lamella/cuda/backend.h"

namespace lamella::cuda {

// Registers the operators that have kernels; calls that these do not serve fall back to the CPU.
void register_pointwise(Library& aten);

}  // namespace lamella::cuda
