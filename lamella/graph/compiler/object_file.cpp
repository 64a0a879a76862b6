// Emits the C function that runs a program, and the program itself as constants.
#include "lamella/graph/compiler/object_file.h"

#include <llvm/IR/IRBuilder.h>

#include <string_view>
#include <vector>

#include "lamella/graph/compiler/global_data.h"

namespace lamella::hlo::compiler {

void emit_program(llvm::Module& module, const ObjectContents& contents) {
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  llvm::Type* pointer = b.getPtrTy();
  auto bytes = [&](std::string_view text) -> llvm::Constant* {
    return global_data(module, llvm::ConstantDataArray::getRaw(text, text.size(), b.getInt8Ty()));
  };
  // The layout of struct lamella_program.
  auto* null = llvm::ConstantPointerNull::get(b.getPtrTy());
  auto* program = llvm::ConstantStruct::getAnon(
      {null, bytes(contents.module_text), b.getInt64(contents.module_text.size()),
       bytes(contents.regions), b.getInt64(contents.regions.size()), bytes(contents.code),
       b.getInt64(contents.code.size()), bytes(contents.weights),
       b.getInt64(contents.weights.size())});
  llvm::GlobalVariable* global = global_data(module, program);
  global->setConstant(false);
  global->setAlignment(llvm::Align(16));

  auto count = static_cast<size_t>(contents.inputs + contents.outputs);
  std::vector<llvm::Type*> types(count, pointer);
  auto* function =
      llvm::Function::Create(llvm::FunctionType::get(b.getInt32Ty(), types, false),
                             llvm::Function::ExternalLinkage, contents.function, module);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  llvm::Value* table = b.CreateAlloca(pointer, b.getInt64(count + 1));
  for (size_t n = 0; n < count; ++n) {
    b.CreateStore(function->getArg(static_cast<unsigned>(n)),
                  b.CreateConstGEP1_64(pointer, table, n));
  }
  llvm::FunctionCallee run = module.getOrInsertFunction(
      "lamella_run_program",
      llvm::FunctionType::get(b.getInt32Ty(), {pointer, pointer, pointer}, false));
  llvm::Value* outputs =
      b.CreateConstGEP1_64(pointer, table, static_cast<uint64_t>(contents.inputs));
  b.CreateRet(b.CreateCall(run, {global, table, outputs}));
}

}  // namespace lamella::hlo::compiler
