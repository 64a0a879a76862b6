// Session: LLVM's code generator, from a module to machine code or an object file.
#pragma once
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <string>
#include <vector>

#include "lamella/graph/execute/code_image.h"

namespace lamella::hlo::compiler {

// Sets the target processor: the machine's, lowered to the CPU capability.
void set_target(llvm::Module& module);
// Compiles the functions of the module with these names to an image; `regions` of it is not set.
void make_code(llvm::Module& module, const std::vector<std::string>& names, CodeImage* image);
// Compiles the module to an object file for any processor of the architecture.
std::string make_object(llvm::Module& module);
// Compiles a module of another target's functions to that target's assembly.
std::string assembly_of(llvm::Module& module, llvm::TargetMachine& target);

}  // namespace lamella::hlo::compiler
