// Pointwise operators, copies and fills by kernels of the device.
#pragma once
#include "lamella/cuda/backend.h"

namespace lamella::cuda {

// The kind of a dtype (kernels/pointwise_parameters.h); -1: kernels do not read it.
int kind_of(ScalarType dtype);

// Registers the operators that have kernels; calls that these do not serve fall back to the CPU.
void register_pointwise(Library& aten);

}  // namespace lamella::cuda
