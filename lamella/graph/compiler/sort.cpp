// Sorts: the comparator as a function, called by the library's sort.
#include "lamella/graph/compiler/emitter.h"

namespace lamella::hlo::compiler {

// less(data, a, b): the comparator's answer about elements a and b of all operands.
llvm::Function* Emitter::comparator(const Instruction* i) {
  llvm::Type *pointer_type = b.getPtrTy(), *number = b.getInt64Ty();
  auto* type = llvm::FunctionType::get(b.getInt32Ty(), {pointer_type, number, number}, false);
  Body made;
  made.function = llvm::Function::Create(type, llvm::Function::InternalLinkage, "less", module);
  made.function->addFnAttr(llvm::Attribute::NoUnwind);
  Body* before = body;
  llvm::BasicBlock* here = b.GetInsertBlock();
  body = &made;
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", made.function));
  std::vector<llvm::Value*> arguments;
  for (size_t n = 0; n < i->operands.size(); ++n) {
    llvm::Value* data = b.CreateLoad(
        pointer_type, b.CreateConstInBoundsGEP1_64(pointer_type, made.function->getArg(0), n));
    for (unsigned side : {1U, 2U}) {
      arguments.push_back(
          load_at(data, i->operand_shape(n).element_type(), uniform(made.function->getArg(side))));
    }
  }
  llvm::Value* answer = apply(*i->computation(AttributeKey::ToApply), arguments)[0];
  b.CreateRet(b.CreateZExt(answer, b.getInt32Ty()));
  body = before;
  b.SetInsertPoint(here);
  return made.function;
}

llvm::Value* Emitter::sorted(const Instruction* i) {
  llvm::Function* less = comparator(i);
  const Shape& shape = i->operand_shape(0);
  size_t count = i->operands.size();
  int64_t dimension = i->integers(AttributeKey::Dimensions)[0], outer = 1, inner = 1;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (d < dimension) outer *= shape.dimension(d);
    if (d > dimension) inner *= shape.dimension(d);
  }
  // As SortProblem in runtime.cpp.
  std::vector<int64_t> numbers = {static_cast<int64_t>(count), outer, shape.dimension(dimension),
                                  inner};
  for (size_t n = 0; n < count; ++n) {
    numbers.push_back(element_bytes(i->operand_shape(n).element_type()));
  }
  llvm::Type* pointer_type = b.getPtrTy();
  llvm::Value* data = variable(llvm::ArrayType::get(pointer_type, 2 * count));
  auto put = [&](size_t at, const Place& place) {
    b.CreateStore(pointer(place), b.CreateConstInBoundsGEP1_64(pointer_type, data, at));
  };
  for (size_t n = 0; n < count; ++n) {
    put(n, *place_of(i->operands[n]));
    put(count + n, places.at(i)[n]);
  }
  llvm::FunctionCallee sort =
      runtime("lamella_sort", b.getInt32Ty(), {pointer_type, pointer_type, pointer_type});
  return b.CreateCall(
      sort, {shared_constant(llvm::ConstantDataArray::get(context, numbers)), data, less});
}

}  // namespace lamella::hlo::compiler
