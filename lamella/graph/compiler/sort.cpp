// Emits sorts: the comparator as a function, which the sort in runtime.cpp calls.
#include "lamella/graph/compiler/emitter.h"

namespace lamella::hlo::compiler {

// less(data, a, b): the result of the comparator on elements a and b of all operands.
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

namespace {

// For a sort of one operand of integers by their values: whether it is descending. Otherwise
// nullopt.
std::optional<bool> plain_order(const Instruction* i) {
  const Instruction* root = i->computation(AttributeKey::ToApply)->root;
  ElementKind kind = element_kind(i->operand_shape(0).element_type());
  if (i->operands.size() != 1 || (kind != ElementKind::Signed && kind != ElementKind::Unsigned) ||
      element_bits(i->operand_shape(0).element_type()) < 8 || root->opcode != Opcode::Compare) {
    return std::nullopt;
  }
  for (const Instruction* operand : root->operands) {
    if (operand->opcode != Opcode::Parameter) return std::nullopt;
  }
  std::string_view direction = root->text(AttributeKey::Direction);
  bool in_order = root->operands[0]->parameter_number < root->operands[1]->parameter_number;
  if (root->operands[0] == root->operands[1] || (direction != "LT" && direction != "GT")) {
    return std::nullopt;
  }
  return (direction == "GT") == in_order;
}

}  // namespace

llvm::Value* Emitter::sorted(const Instruction* i) {
  std::optional<bool> descending = plain_order(i);
  llvm::Value* less =
      descending ? static_cast<llvm::Value*>(b.getInt32(*descending ? 1 : 0)) : comparator(i);
  const Shape& shape = i->operand_shape(0);
  size_t count = i->operands.size();
  int64_t dimension = i->integers(AttributeKey::Dimensions)[0], outer = 1, inner = 1;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (d < dimension) outer *= shape.dimension(d);
    if (d > dimension) inner *= shape.dimension(d);
  }
  // The layout of SortProblem in runtime.cpp.
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
  std::string name = "lamella_sort";
  if (descending) name += str("_", element_name(i->operand_shape(0).element_type()));
  llvm::FunctionCallee sort =
      runtime(name.c_str(), b.getInt32Ty(), {pointer_type, pointer_type, less->getType()});
  return b.CreateCall(
      sort, {shared_constant(llvm::ConstantDataArray::get(context, numbers)), data, less});
}

}  // namespace lamella::hlo::compiler
