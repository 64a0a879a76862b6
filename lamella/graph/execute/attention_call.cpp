// Recognizes custom calls of the attention operator and reads their arguments.
#include "lamella/graph/execute/attention_call.h"

#include <cmath>

#include "lamella/graph/custom_call/operator_plan.h"

namespace lamella::hlo {
namespace {

constexpr const char* kOperator = "aten::_scaled_dot_product_flash_attention_for_cpu";

// True for an F32 mask whose dimensions are those of the scores, or 1.
bool fits(const Shape& mask, const Instruction& i) {
  const int64_t scores[] = {i.operand_shape(0).dimension(0), i.operand_shape(0).dimension(1),
                            i.operand_shape(0).dimension(2), i.operand_shape(1).dimension(2)};
  if (mask.element_type() != ElementType::F32 || mask.rank() > 4) return false;
  for (int64_t d = 0; d < mask.rank(); ++d) {
    int64_t size = mask.dimension(d);
    if (size != 1 && size != scores[4 - mask.rank() + d]) return false;
  }
  return true;
}

}  // namespace

std::optional<AttentionCall> attention_call(const Instruction& i) {
  if (i.opcode != Opcode::CustomCall || i.operands.size() < 3 || i.operands.size() > 4 ||
      i.text(AttributeKey::CustomCallTarget) != kOperator || !i.shape->is_tuple()) {
    return std::nullopt;
  }
  ElementType type = i.operand_shape(0).element_type();
  if (type != ElementType::F32 && type != ElementType::F16 && type != ElementType::BF16) {
    return std::nullopt;
  }
  for (size_t n = 0; n < 3; ++n) {
    const Shape& shape = i.operand_shape(n);
    if (!shape.is_array() || shape.rank() != 4 || shape.element_type() != type ||
        shape.elements() == 0) {
      return std::nullopt;
    }
  }
  const Shape &q = i.operand_shape(0), &k = i.operand_shape(1), &v = i.operand_shape(2);
  if (k.dimension(0) != q.dimension(0) || v.dimension(0) != q.dimension(0) ||
      k.dimension(1) != v.dimension(1) || q.dimension(1) % k.dimension(1) != 0 ||
      k.dimension(3) != q.dimension(3) || k.dimension(2) != v.dimension(2)) {
    return std::nullopt;
  }
  std::vector<OperatorArgument> arguments = arguments_of_call(i, kOperator);
  if (arguments.size() != 8) return std::nullopt;
  for (size_t n = 0; n < 3; ++n) {
    if (arguments[n].operands != std::vector<int32_t>{static_cast<int32_t>(n)}) return std::nullopt;
  }
  if (arguments[3].value.toDouble() != 0 || !arguments[7].operands.empty()) return std::nullopt;
  AttentionCall call;
  call.causal = arguments[4].value.toBool();
  if (!arguments[5].operands.empty()) {
    call.mask = arguments[5].operands[0];
    if (call.mask != 3 || !fits(i.operand_shape(3), i)) return std::nullopt;
  }
  call.scale = arguments[6].value.isNone() ? 1 / std::sqrt(static_cast<double>(q.dimension(3)))
                                           : arguments[6].value.toDouble();
  return call;
}

}  // namespace lamella::hlo
