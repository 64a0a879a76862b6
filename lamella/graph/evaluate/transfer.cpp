// Infeed, outfeed, send and recv, over the queues of the run's device.
#include "lamella/graph/runtime/transfer.h"

#include <cstring>

#include "lamella/graph/evaluate/collective.h"

namespace lamella::hlo {
namespace {

// The literal's elements in memory of the value's own.
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
                      " to be handed over before it is taken, got nothing");
  LAMELLA_HLO_REQUIRE(found->shape().compatible(*shape), step.instruction, "expected ",
                      shape->to_string(false), ", got ", found->shape().to_string(false));
  return copy_of_literal(shape, *found);
}

}  // namespace

Value evaluate_transfer(Step& step) {
  const Instruction& i = step.instruction;
  Transfers& device = transfers(step.run.context.device_ordinal);
  int64_t channel = i.integer(AttributeKey::ChannelId);
  bool host = i.flag(AttributeKey::IsHostTransfer);
  auto part = [&](size_t n) { return &step.shape().tuple_shapes()[n]; };
  switch (i.opcode) {
    case Opcode::Infeed: {
      Value parts[] = {take(step, device.infeed(), part(0)), Value::token(part(1))};
      return Value::tuple(i.shape, parts);
    }
    case Opcode::Outfeed:
      device.outfeed().put(step.operands[0].to_literal());
      return Value::token(i.shape);
    case Opcode::Send: {
      device.from_program(channel).put(step.operands[0].to_literal());
      Value parts[] = {std::move(step.operands[0]), Value::zeros(part(1)), Value::token(part(2))};
      return Value::tuple(i.shape, parts);
    }
    case Opcode::Recv: {
      TransferQueue& queue = host ? device.to_program(channel) : device.from_program(channel);
      Value parts[] = {take(step, queue, part(0)), Value::zeros(part(1)), Value::token(part(2))};
      return Value::tuple(i.shape, parts);
    }
    case Opcode::SendDone:
      return Value::token(i.shape);
    default: {  // recv-done
      Value parts[] = {step.operands[0].element(0), Value::token(part(1))};
      return Value::tuple(i.shape, parts);
    }
  }
}

}  // namespace lamella::hlo
