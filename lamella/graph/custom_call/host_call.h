// Custom calls of plain functions on the host: the original and status-returning conventions.
#pragma once
#include <memory>

#include "lamella/graph/custom_call/api_version.h"
#include "lamella/graph/custom_call/call.h"
#include "lamella/graph/custom_call/registry.h"

namespace lamella::hlo {

// The target must have the kind Function, and the version must not be TypedFfi.
std::unique_ptr<PreparedCall> prepare_host_call(const Instruction& instruction,
                                                TargetPointer target, ApiVersion version);

// Converts an exception that the target threw to an Error that names the instruction and the
// target. Must be called in a catch (...). Exceptions that must keep their type (a pending Python
// exception, out of memory) are rethrown unchanged.
[[noreturn]] void fail_with_current_exception(const Instruction& instruction,
                                              std::string_view target);

}  // namespace lamella::hlo
