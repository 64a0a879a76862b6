// The executor: an executable that runs regions of machine code, and operators and rules for the
// rest; or, as the reference evaluator, one instruction after the other by its rule.
#pragma once
#include <memory>
#include <string>

#include "lamella/graph/runtime/executable.h"

namespace lamella::hlo {

// Code of a module that is kept elsewhere: an image as bytes, and the digest of the regions that it
// is for. Where both are empty they are filled; where they do not fit, code is made.
struct StoredCode {
  std::string regions;
  std::string image;
};

// The module must be verified and must not be changed afterwards. Finds the targets of all custom
// calls; throws an Error that names the instruction where one is unknown.
std::unique_ptr<Executable> make_executor(std::shared_ptr<const Module> module,
                                          const CompileOptions& options = {},
                                          StoredCode* stored = nullptr);
// The same for the reference evaluator, which changes nothing of the module and says what it means.
std::unique_ptr<Executable> make_evaluator(std::shared_ptr<const Module> module,
                                           const CompileOptions& options = {});

}  // namespace lamella::hlo
