// Pairs of a start and a done: the start does everything, the done hands out the result.
#include "lamella/graph/evaluate/collective.h"

namespace lamella::hlo {
namespace {

// What the tuple of a start holds beside operands and result: room for a device's own use.
Value room(const Shape* shape) {
  if (shape->is_array()) return Value::zeros(shape);
  if (!shape->is_tuple()) return Value::token(shape);
  std::vector<Value> parts;
  for (const Shape& part : shape->tuple_shapes()) parts.push_back(room(&part));
  return Value::tuple(shape, parts);
}

}  // namespace

Value evaluate_asynchronous(Step& step) {
  const Instruction& i = step.instruction;
  const std::vector<Shape>& parts = step.shape().tuple_shapes();
  std::vector<Value> made;
  switch (i.opcode) {
    case Opcode::AsyncStart: {
      std::vector<Value> arguments(step.operands.begin(), step.operands.end());
      made.push_back(Value::tuple(&parts[0], step.operands));
      made.push_back(step.run.call(*i.computation(AttributeKey::Calls), arguments));
      break;
    }
    case Opcode::CopyStart:
      made.push_back(step.operands[0]);
      made.push_back(std::move(step.operands[0]));
      break;
    case Opcode::AsyncUpdate:
      return std::move(step.operands[0]);
    case Opcode::AsyncDone:
      return step.operands[0].element(1);
    default:  // copy-done
      return step.operands[0].element(0);
  }
  for (size_t n = made.size(); n < parts.size(); ++n) made.push_back(room(&parts[n]));
  return Value::tuple(i.shape, made);
}

}  // namespace lamella::hlo
