// Operations whose sizes are operands. HLO has most of them with sizes that are known: constants,
// or stated by the result.
#include <algorithm>

#include "lamella/graph/stablehlo/translation.h"

namespace lamella::hlo::stablehlo {
namespace {

// The elements of an operand that is a constant.
std::vector<int64_t> constant_integers(const Translation& t, const Operation& op,
                                       const Instruction* one) {
  const Instruction* from = one->opcode == Opcode::Broadcast ? one->operands[0] : one;
  if (from->opcode != Opcode::Constant || !is_integral(from->shape->element_type())) {
    t.fail(op, "expected sizes that are constants, got '", one->name, "'");
  }
  if (one->shape->elements() > 2 * kMostDimensions) t.fail(op, "expected sizes of dimensions");
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < one->shape->elements(); ++i) {
    numbers.push_back(from->literal->integer_at(from == one ? i : 0));
  }
  return numbers;
}
std::vector<int64_t> constant_integers(const Translation& t, const Operation& op,
                                       const Instruction* one, int64_t count) {
  std::vector<int64_t> numbers = constant_integers(t, op, one);
  if (static_cast<int64_t>(numbers.size()) != count) {
    t.fail(op, "expected ", count, " sizes, got ", numbers.size());
  }
  return numbers;
}
}  // namespace

void translate_dynamic_broadcast_in_dim(Translation& t, const Operation& op) {
  broadcast_in_dim(t, op, t.operands(op, 2)[0]);
}
void translate_dynamic_iota(Translation& t, const Operation& op) {
  t.operands(op, 1);
  t.emit(op, {}, t.attributes(op));
}

void translate_dynamic_reshape(Translation& t, const Operation& op) {
  Instructions operands = t.operands(op, 2);
  Shape shape = t.result_shape(op);
  if (shape.is_static()) return t.give(op, {t.add(Opcode::Reshape, {operands[0]}, shape)});
  // One operand for each size.
  Instruction* sizes = operands[1];
  operands.pop_back();
  for (int64_t d = 0; d < shape.rank(); ++d) {
    AttributeList list(t.module());
    list.slice(std::vector<SliceDimension>{{d, d + 1, 1}});
    const Shape one = sizes->shape->with_dimensions({1});
    Instruction* part = t.add(Opcode::Slice, std::span(&sizes, 1), std::move(list), one);
    operands.push_back(t.add(Opcode::Reshape, {part}, one.with_dimensions({})));
  }
  t.emit(op, operands, t.attributes(op));
}

void translate_dynamic_pad(Translation& t, const Operation& op) {
  Instructions operands = t.operands(op, 5);
  const int64_t rank = operands[0]->shape->rank();
  auto low = constant_integers(t, op, operands[2], rank);
  auto high = constant_integers(t, op, operands[3], rank);
  auto interior = constant_integers(t, op, operands[4], rank);
  std::vector<PaddingDimension> dimensions;
  for (size_t d = 0; d < low.size(); ++d) dimensions.push_back({low[d], high[d], interior[d]});
  AttributeList list = t.attributes(op);
  list.padding(dimensions);
  operands.resize(2);
  t.emit(op, operands, std::move(list));
}

// The sizes of slices that are not constants follow from the result's.
void translate_dynamic_gather(Translation& t, const Operation& op) {
  Instructions operands = t.operands(op, 3);
  AttributeList list = t.attributes(op);
  const int64_t rank = operands[0]->shape->rank();
  std::vector<int64_t> sizes;
  if (operands[2]->opcode == Opcode::Constant || operands[2]->opcode == Opcode::Broadcast) {
    sizes = constant_integers(t, op, operands[2], rank);
  } else {
    const Shape result = t.result_shape(op);
    std::vector<int64_t> offsets = t.integers(op, "offset_dims"), single;
    for (const char* name : {"collapsed_slice_dims", "operand_batching_dims"}) {
      if (op.find(name) == nullptr) continue;
      for (int64_t d : t.integers(op, name)) single.push_back(d);
    }
    size_t next = 0;
    for (int64_t d = 0; d < rank; ++d) {
      const bool is_single = std::ranges::find(single, d) != single.end();
      const bool is_known = !is_single && next < offsets.size() && offsets[next] >= 0 &&
                            offsets[next] < result.rank() && !result.is_unbounded(offsets[next]);
      if (!is_single && !is_known) t.fail(op, "expected sizes that are constants");
      sizes.push_back(is_single ? 1 : result.dimension(offsets[next++]));
    }
  }
  list.integers(AttributeKey::SliceSizes, sizes);
  operands.pop_back();
  t.emit(op, operands, std::move(list));
}

void translate_real_dynamic_slice(Translation& t, const Operation& op) {
  Instructions operands = t.operands(op, 4);
  const Shape shape = t.result_shape(op);
  const int64_t rank = operands[0]->shape->rank();
  auto starts = constant_integers(t, op, operands[1], rank);
  auto limits = constant_integers(t, op, operands[2], rank);
  auto strides = constant_integers(t, op, operands[3], rank);
  std::vector<SliceDimension> dimensions;
  for (size_t d = 0; d < starts.size(); ++d)
    dimensions.push_back({starts[d], limits[d], strides[d]});
  AttributeList list = t.attributes(op);
  list.slice(dimensions);
  t.give(op, {t.add(Opcode::Slice, std::span(operands).first(1), std::move(list), shape)});
}

void translate_dynamic_conv(Translation& t, const Operation& op) {
  if (op.operands.size() != 3) t.fail(op, "expected 3 operands, got ", op.operands.size());
  Instructions operands = t.operands(op);
  Attribute padding;
  padding.kind = Attribute::Kind::List;
  std::vector<Attribute> numbers;
  for (int64_t one : constant_integers(t, op, operands[2])) {
    numbers.emplace_back().kind = Attribute::Kind::Integer;
    numbers.back().integer = one;
  }
  for (const Attribute& one : numbers) padding.list.push_back(&one);
  Operation known = op;
  std::erase_if(known.attributes, [](const Named& one) { return one.name == "padding"; });
  known.attributes.push_back({"padding", &padding});
  known.operands.pop_back();
  translate_convolution(t, known);
}

// Quantized types, which shapes do not have.
void translate_uniform_quantize(Translation& t, const Operation& op) {
  t.fail(op, "expected an operation on numbers, got one on quantized types");
}
void translate_uniform_dequantize(Translation& t, const Operation& op) {
  translate_uniform_quantize(t, op);
}

}  // namespace lamella::hlo::stablehlo
