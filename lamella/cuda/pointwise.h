// Pointwise operators, copies and fills by kernels of the device.
#pragma once
#include "lamella/cuda/backend.h"

namespace lamella::cuda {

// Registers the operators that have kernels; calls that these do not serve fall back to the CPU.
void register_pointwise(Library& aten);
// Runs an operator's kernel of the CPU on tensors of the device; what it does not serve falls back.
lamella_status run_structured(const lamella_kernel* kernel, const lamella_operator* op,
                              uint64_t key_set, const lamella_value* arguments,
                              lamella_value* returns) noexcept;

}  // namespace lamella::cuda
