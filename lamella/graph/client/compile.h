// Compiles modules to executables.
#pragma once
#include <memory>

#include "lamella/graph/runtime/executable.h"

namespace lamella::hlo {

// Verifies the module, unless the caller knows it to be `verified`, and finds the targets of its
// custom calls. Throws an Error that names the wrong instruction. The module must not be changed
// afterwards.
std::unique_ptr<Executable> compile(std::shared_ptr<const Module> module,
                                    const CompileOptions& options = {}, bool verified = false);

}  // namespace lamella::hlo
