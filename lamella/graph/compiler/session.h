// Session: LLVM's code generator, from a module to machine code or an object file.
#pragma once
#include <llvm/IR/Module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lamella/graph/execute/code_image.h"

namespace lamella::hlo::compiler {

// Sets the target: the machine's processor, lowered to the CPU capability, or GPUs of NVIDIA.
// Returns false if LLVM was built without it.
enum class Target : uint8_t { Host, Device };
bool set_target(llvm::Module& module, Target target = Target::Host);
// Compiles the functions of the module with these names to an image; `regions` of it is not set.
void make_code(llvm::Module& module, const std::vector<std::string>& names, CodeImage* image);
// Compiles the module to an object file for any processor of the architecture.
std::string make_object(llvm::Module& module);
// Compiles a module for a device to PTX.
std::string make_assembly(llvm::Module& module);

}  // namespace lamella::hlo::compiler
