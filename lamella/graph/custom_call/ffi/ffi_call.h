// Calls of typed handlers (API_VERSION_TYPED_FFI).
#pragma once
#include <memory>

#include "lamella/graph/custom_call/call.h"
#include "lamella/graph/custom_call/registry.h"

namespace lamella::hlo {

// The target must have the kind Typed. Throws an Error that names the instruction if the handler
// cannot be called.
std::unique_ptr<PreparedCall> prepare_typed_call(const Instruction& instruction,
                                                 TargetPointer target);

}  // namespace lamella::hlo
