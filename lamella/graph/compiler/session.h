// Session: LLVM's code generator.
#pragma once
#include <llvm/IR/Module.h>

#include <string>
#include <vector>

#include "lamella/graph/execute/code_image.h"

namespace lamella::hlo::compiler {

// The processor that code is made for: the machine's, lowered to the CPU capability.
void set_target(llvm::Module& module);
// Machine code of the module's functions, whose names are given, as an image without its regions.
void make_code(llvm::Module& module, const std::vector<std::string>& names, CodeImage* image);
// The module as an object file, for any processor of the kind.
std::string make_object(llvm::Module& module);

}  // namespace lamella::hlo::compiler
