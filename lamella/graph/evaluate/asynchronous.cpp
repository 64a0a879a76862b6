// Pairs of a start and a done: the start does everything, the done hands out the result.
#include "lamella/graph/evaluate/rules.h"

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

// The tuple of a start: operands and result, then what room the shape asks for.
Value with_room(const Step& step, std::vector<Value> parts) {
  const std::vector<Shape>& shapes = step.shape().tuple_shapes();
  for (size_t n = parts.size(); n < shapes.size(); ++n) parts.push_back(room(&shapes[n]));
  return Value::tuple(step.instruction.shape, parts);
}

}  // namespace

Value evaluate_async_start(Step& step) {
  std::vector<Value> arguments(step.operands.begin(), step.operands.end());
  Value operands = Value::tuple(&step.shape().tuple_shapes()[0], step.operands);
  Value result = step.run.call(*step.instruction.computation(AttributeKey::Calls), arguments);
  return with_room(step, {std::move(operands), std::move(result)});
}

Value evaluate_copy_start(Step& step) {
  return with_room(step, {step.operands[0], step.operands[0]});
}

Value evaluate_copy_done(Step& step) { return step.operands[0].element(0); }

}  // namespace lamella::hlo
