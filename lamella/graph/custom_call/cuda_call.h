// Custom calls of functions that enqueue work on a GPU.
#pragma once
#include <memory>

#include "lamella/graph/custom_call/api_version.h"
#include "lamella/graph/custom_call/call.h"
#include "lamella/graph/custom_call/registry.h"

namespace lamella::hlo {

// The target must have the kind Function and be registered for CUDA. Throws an Error if there is no
// GPU.
std::unique_ptr<PreparedCall> prepare_cuda_call(const Instruction& instruction,
                                                TargetPointer target, ApiVersion version);

}  // namespace lamella::hlo
