// Start/done pairs: the start does all the work, and the done returns the result.
#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {
namespace {

// Fills the parts of a start's tuple that are reserved for the device's use: zeros and tokens.
Value room(const Shape* shape) {
  if (shape->is_array()) return Value::zeros(shape);
  if (!shape->is_tuple()) return Value::token(shape);
  std::vector<Value> parts;
  for (const Shape& part : shape->tuple_shapes()) parts.push_back(room(&part));
  return Value::tuple(shape, parts);
}

// The tuple of a start: operands and result, then the reserved parts that the shape has.
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
