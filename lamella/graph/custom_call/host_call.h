// Calls of functions on the host: the original and the status-returning conventions.
#pragma once
#include <memory>

#include "lamella/graph/custom_call/api_version.h"
#include "lamella/graph/custom_call/call.h"
#include "lamella/graph/custom_call/registry.h"

namespace lamella::hlo {

// The target is of the kind Function, the version not TypedFfi.
std::unique_ptr<PreparedCall> prepare_host_call(const Instruction& instruction,
                                                TargetPointer target, ApiVersion version);

// Ends the call with an Error that names the instruction and the target, for an exception that the
// target threw. To be called in a catch (...). What must keep its type (a pending exception of
// Python, no memory) goes on as it is.
[[noreturn]] void fail_with_current_exception(const Instruction& instruction,
                                              std::string_view target);

}  // namespace lamella::hlo
