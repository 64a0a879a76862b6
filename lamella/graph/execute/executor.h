// The executor: an executable that runs regions of machine code, and operators and rules for the
// remaining instructions; or, as the reference evaluator, every instruction by its rule.
#pragma once
#include <memory>
#include <string>

#include "lamella/graph/runtime/executable.h"

namespace lamella::hlo {

// Code of a module that the caller stores: an image as bytes, and the digest of its regions. If
// both are empty they are filled in; if they do not match the module, code is compiled.
struct StoredCode {
  std::string regions;
  std::string image;
};

// The module must be verified and must not be changed afterwards. Finds the targets of all custom
// calls; throws an Error that names the instruction if a target is unknown.
std::unique_ptr<Executable> make_executor(std::shared_ptr<const Module> module,
                                          const CompileOptions& options = {},
                                          StoredCode* stored = nullptr);
// The reference evaluator: runs the module unchanged, and defines what it means.
std::unique_ptr<Executable> make_evaluator(std::shared_ptr<const Module> module,
                                           const CompileOptions& options = {});

}  // namespace lamella::hlo
