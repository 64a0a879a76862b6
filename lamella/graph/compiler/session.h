// Session: LLVM's just-in-time compiler.
#pragma once
#include <llvm/IR/Module.h>

#include <memory>
#include <string>
#include <vector>

namespace lamella::hlo::compiler {

// The processor that code is made for: the machine's, lowered to the CPU capability.
void set_target(llvm::Module& module);
// Makes machine code of the module and gives the addresses of its functions, in the order of their
// names. `holder` keeps the code.
std::vector<void*> make_code(std::unique_ptr<llvm::Module> module,
                             std::unique_ptr<llvm::LLVMContext> context,
                             const std::vector<std::string>& names,
                             std::shared_ptr<const void>* holder);

}  // namespace lamella::hlo::compiler
