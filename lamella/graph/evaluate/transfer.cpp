// Infeed, outfeed, send and recv through the queues of the run's device.
#include "lamella/graph/runtime/transfer.h"

#include <cstring>

#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {
namespace {

// A value with a copy of the literal's elements.
Value copy_of_literal(const Shape* shape, const Literal& literal) {
  if (shape->is_tuple()) {
    std::vector<Value> elements;
    for (size_t n = 0; n < literal.elements().size(); ++n) {
      elements.push_back(copy_of_literal(&shape->tuple_shapes()[n], literal.elements()[n]));
    }
    return Value::tuple(shape, elements);
  }
  if (!shape->is_array()) return Value::token(shape);
  Value value = Value::uninitialized(shape);
  if (value.bytes() != 0) std::memcpy(value.data(), literal.data(), value.bytes());
  return value;
}

Value take(const Step& step, TransferQueue& queue, const Shape* shape) {
  auto found = queue.take(transfers(step.run.context.device_ordinal).patience());
  LAMELLA_HLO_REQUIRE(found.has_value(), step.instruction, "expected ", shape->to_string(false),
                      " in the queue, got nothing");
  LAMELLA_HLO_REQUIRE(found->shape().compatible(*shape), step.instruction, "expected ",
                      shape->to_string(false), ", got ", found->shape().to_string(false));
  return copy_of_literal(shape, *found);
}

Transfers& device_of(const Step& step) { return transfers(step.run.context.device_ordinal); }
int64_t channel_of(const Step& step) { return step.instruction.integer(AttributeKey::ChannelId); }
const Shape* part(const Step& step, size_t n) { return &step.shape().tuple_shapes()[n]; }

}  // namespace

Value evaluate_infeed(Step& step) {
  Value parts[] = {take(step, device_of(step).infeed(), part(step, 0)),
                   Value::token(part(step, 1))};
  return Value::tuple(step.instruction.shape, parts);
}

Value evaluate_outfeed(Step& step) {
  device_of(step).outfeed().put(step.operands[0].to_literal());
  return Value::token(step.instruction.shape);
}

Value evaluate_send(Step& step) {
  device_of(step).from_program(channel_of(step)).put(step.operands[0].to_literal());
  Value parts[] = {std::move(step.operands[0]), Value::zeros(part(step, 1)),
                   Value::token(part(step, 2))};
  return Value::tuple(step.instruction.shape, parts);
}

Value evaluate_send_done(Step& step) { return Value::token(step.instruction.shape); }

Value evaluate_recv(Step& step) {
  bool host = step.instruction.flag(AttributeKey::IsHostTransfer);
  TransferQueue& queue = host ? device_of(step).to_program(channel_of(step))
                              : device_of(step).from_program(channel_of(step));
  Value parts[] = {take(step, queue, part(step, 0)), Value::zeros(part(step, 1)),
                   Value::token(part(step, 2))};
  return Value::tuple(step.instruction.shape, parts);
}

Value evaluate_recv_done(Step& step) {
  Value parts[] = {step.operands[0].element(0), Value::token(part(step, 1))};
  return Value::tuple(step.instruction.shape, parts);
}

}  // namespace lamella::hlo
