// The reference evaluator: an executable that does one instruction after the other.
#pragma once
#include <memory>

#include "lamella/graph/runtime/executable.h"

namespace lamella::hlo {

// Finds the targets of all custom calls; throws an Error that names the instruction where one is
// unknown. The module must be verified and must not be changed afterwards.
std::unique_ptr<Executable> make_evaluator(std::shared_ptr<const Module> module,
                                           const CompileOptions& options = {});

}  // namespace lamella::hlo
