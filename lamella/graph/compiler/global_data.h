// global_data(): a constant in memory beside the code.
#pragma once
#include <llvm/IR/Module.h>

namespace lamella::hlo::compiler {

// LLVM creates the variable, since GCC takes the `operator delete` that an inlined constructor
// would call for one of another class.
inline llvm::GlobalVariable* global_data(llvm::Module& module, llvm::Constant* value) {
  auto* made = llvm::cast<llvm::GlobalVariable>(module.getOrInsertGlobal("", value->getType()));
  made->setInitializer(value);
  made->setConstant(true);
  made->setLinkage(llvm::GlobalValue::PrivateLinkage);
  made->setAlignment(llvm::Align(64));
  return made;
}

}  // namespace lamella::hlo::compiler
