// Making modules ready to run.
#pragma once
#include <memory>

#include "lamella/graph/runtime/executable.h"

namespace lamella::hlo {

// Verifies the module and finds the targets of its custom calls; throws an Error that names the
// instruction where something is wrong. The module must not be changed afterwards.
std::unique_ptr<Executable> compile(std::shared_ptr<const Module> module,
                                    const CompileOptions& options = {});

}  // namespace lamella::hlo
