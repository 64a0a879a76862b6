// Device code: the kernels of regions for GPUs of NVIDIA.
#pragma once
#include <optional>
#include <span>

#include "lamella/graph/execute/machine_code.h"

namespace lamella::hlo::compiler {

// See Note [Images of devices] in machine_code.h; nullopt if LLVM has no such target.
std::optional<CodeImage> device_code(std::span<const Region* const> regions);

}  // namespace lamella::hlo::compiler
