// Operations that move elements.
//
// Note [Moving]
//   Most of these operations read the operand with one stride per dimension of the result: 0 for a
//   broadcast dimension, negative for a reversed one. Pad, concatenate and dynamic-update-slice
//   write each operand into a block of the result instead. Both kinds use copy_strided.
#include <algorithm>
#include <cstring>

#include "lamella/graph/evaluate/indices.h"
#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/evaluate/rules.h"
#include "lamella/graph/evaluate/strided.h"

namespace lamella::hlo {
namespace {

using Numbers = std::vector<int64_t>;

// A result whose element at each index is the operand's element at `offset` + index * strides.
Value read_strided(Step& step, const Numbers& strides, int64_t offset) {
  const Value& operand = step.operands[0];
  ElementType type = operand.shape().element_type();
  Value result = step.result();
  if (operand.shape().elements() == 0) return result;
  copy_strided(type, step.shape().dimensions(), at_element(type, operand.data(), offset), strides,
               result.data(), row_major_strides(step.shape().dimensions()));
  return result;
}

}  // namespace

Value evaluate_broadcast(Step& step) {
  Numbers own = row_major_strides(step.operands[0].shape().dimensions());
  Numbers strides(step.shape().dimensions().size(), 0);
  auto dimensions = step.instruction.integers(AttributeKey::Dimensions);
  for (size_t d = 0; d < dimensions.size(); ++d) {
    strides[static_cast<size_t>(dimensions[d])] = own[d];
  }
  return read_strided(step, strides, 0);
}

Value evaluate_transpose(Step& step) {
  Numbers own = row_major_strides(step.operands[0].shape().dimensions());
  Numbers strides;
  for (int64_t d : step.instruction.integers(AttributeKey::Dimensions)) {
    strides.push_back(own[static_cast<size_t>(d)]);
  }
  return read_strided(step, strides, 0);
}

Value evaluate_reverse(Step& step) {
  const Shape& shape = step.shape();
  Numbers strides = row_major_strides(shape.dimensions());
  int64_t offset = 0;
  for (int64_t d : step.instruction.integers(AttributeKey::Dimensions)) {
    int64_t& stride = strides[static_cast<size_t>(d)];
    offset += (shape.dimension(d) - 1) * stride;
    stride = -stride;
  }
  return read_strided(step, strides, offset);
}

Value evaluate_slice(Step& step) {
  Numbers strides = row_major_strides(step.operands[0].shape().dimensions());
  auto parts = step.instruction.find(AttributeKey::Slice)->slices();
  int64_t offset = 0;
  for (size_t d = 0; d < parts.size(); ++d) {
    offset += parts[d].start * strides[d];
    // A stride larger than the dimension is clamped: it selects one element in any case.
    strides[d] *= std::min(parts[d].stride, step.operands[0].shape().dimensions()[d]);
  }
  if (step.shape().elements() == 0) return step.result();
  return read_strided(step, strides, offset);
}

namespace {

// The start indices of a dynamic slice of `sizes`, clamped so that the slice lies within the
// operand. They are the operands from `first` on: one for each dimension, or one array.
Numbers dynamic_starts(const Step& step, size_t first, std::span<const int64_t> sizes) {
  const Shape& shape = step.operands[0].shape();
  Numbers starts(sizes.size());
  bool together = step.operands.size() == first + 1 && step.operands[first].shape().rank() == 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    IndexReader start(step.operands[together ? first : first + d]);
    starts[d] = clamped_start(start[together ? static_cast<int64_t>(d) : 0], shape.dimensions()[d],
                              sizes[d]);
  }
  return starts;
}
}  // namespace

Value evaluate_dynamic_slice(Step& step) {
  Numbers strides = row_major_strides(step.operands[0].shape().dimensions());
  Numbers starts = dynamic_starts(step, 1, step.shape().dimensions());
  return read_strided(step, strides, place_of(starts, strides));
}

Value evaluate_dynamic_update_slice(Step& step) {
  const Value& update = step.operands[1];
  const Shape& shape = update.shape();
  // The instruction's shape, because an update of dynamic size is placed as one of the whole size.
  Numbers starts = dynamic_starts(step, 2, step.instruction.operand_shape(1).dimensions());
  Value result =
      Value::reshaped(Value::writable(std::move(step.operands[0])), step.instruction.shape);
  Numbers strides = row_major_strides(step.shape().dimensions());
  ElementType type = shape.element_type();
  copy_strided(type, shape.dimensions(), update.data(), row_major_strides(shape.dimensions()),
               at_element(type, result.data(), place_of(starts, strides)), strides);
  return result;
}

Value evaluate_concatenate(Step& step) {
  auto along = static_cast<size_t>(step.instruction.integers(AttributeKey::Dimensions)[0]);
  Numbers strides = row_major_strides(step.shape().dimensions());
  ElementType type = step.shape().element_type();
  Value result = step.result();
  int64_t offset = 0;
  for (const Value& operand : step.operands) {
    std::span<const int64_t> sizes = operand.shape().dimensions();
    copy_strided(type, sizes, operand.data(), row_major_strides(sizes),
                 at_element(type, result.data(), offset), strides);
    offset += sizes[along] * strides[along];
  }
  return result;
}

Value evaluate_pad(Step& step) {
  const Value &operand = step.operands[0], &value = step.operands[1];
  auto parts = step.instruction.find(AttributeKey::Padding)->padding();
  ElementType type = step.shape().element_type();
  Value result = step.result();
  fill_elements(type, value.data(), result.data(), step.shape().elements());
  Numbers from_strides = row_major_strides(operand.shape().dimensions());
  Numbers to_strides = row_major_strides(step.shape().dimensions());
  Numbers sizes(parts.size());
  int64_t from = 0, to = 0;
  for (size_t d = 0; d < parts.size(); ++d) {
    // Element n goes to low + n * apart; with negative padding, elements out of bounds are skipped.
    int64_t apart = parts[d].interior + 1, low = parts[d].low;
    int64_t first = low >= 0 ? 0 : (-low + apart - 1) / apart;
    int64_t last = std::min(operand.shape().dimensions()[d],
                            (step.shape().dimensions()[d] - low + apart - 1) / apart);
    sizes[d] = last - first;
    if (sizes[d] <= 0) return result;
    from += first * from_strides[d];
    to += (low + first * apart) * to_strides[d];
    // A single element needs no stride; skipping it avoids overflow for huge interior padding.
    if (sizes[d] > 1) to_strides[d] *= apart;
  }
  copy_strided(type, sizes, at_element(type, operand.data(), from), from_strides,
               at_element(type, result.data(), to), to_strides);
  return result;
}

Value evaluate_iota(Step& step) {
  const Shape& shape = step.shape();
  auto along = static_cast<size_t>(step.instruction.integer(AttributeKey::IotaDimension));
  int64_t size = shape.dimensions()[along];
  int64_t apart = row_major_strides(shape.dimensions())[along];
  Value result = step.result();
  visit_numbers(shape.element_type(), [&]<class Number>() {
    for (int64_t n = 0; n < shape.elements(); ++n) {
      int64_t index = n / apart % size;
      using Work = typename Number::Work;
      if constexpr (is_complex_type_v<Work>) {
        Number::store(result.data(), n, Work(static_cast<typename Work::value_type>(index)));
      } else {
        Number::store(result.data(), n, static_cast<Work>(index));
      }
    }
  });
  return result;
}

// The same memory with another shape. If layouts are not row-major, elements are read in the order
// of the operand's layout and written in the order of the result's layout.
Value evaluate_bitcast(Step& step) {
  Value& operand = step.operands[0];
  const Shape &from = operand.shape(), &to = step.shape();
  if (from.is_row_major() && to.is_row_major()) {
    return Value::reshaped(std::move(operand), step.instruction.shape);
  }
  Value memory = Value::uninitialized(operand.shape_pointer());
  copy_strided(from.element_type(), from.dimensions(), operand.data(),
               row_major_strides(from.dimensions()), memory.data(), layout_strides(from));
  Value result = step.result();
  copy_strided(to.element_type(), to.dimensions(), memory.data(), layout_strides(to), result.data(),
               row_major_strides(to.dimensions()));
  return result;
}

// mode=rotate: index n of a dimension takes the element at n + shift, modulo the size.
Value evaluate_shuffle(Step& step) {
  const Instruction& i = step.instruction;
  auto dimensions = i.integers(AttributeKey::Dimensions);
  auto shifts = i.integers(AttributeKey::Shifts);
  LAMELLA_HLO_REQUIRE(i.text(AttributeKey::Mode) == "rotate", i,
                      "expected mode=rotate, got mode=", i.text(AttributeKey::Mode));
  LAMELLA_HLO_REQUIRE(dimensions.size() == shifts.size(), i, "expected ", dimensions.size(),
                      " shifts, got ", braced(shifts));
  require_dimensions(i, AttributeKey::Dimensions, dimensions, step.shape().rank());
  ElementType type = step.shape().element_type();
  Value from = step.operands[0];
  for (size_t n = 0; n < dimensions.size(); ++n) {
    auto along = static_cast<size_t>(dimensions[n]);
    Numbers strides = row_major_strides(step.shape().dimensions());
    Numbers sizes = copy_of(step.shape().dimensions());
    int64_t size = sizes[along];
    if (size == 0) break;
    int64_t shift = (shifts[n] % size + size) % size;
    Value to = step.result();
    sizes[along] = size - shift;
    copy_strided(type, sizes, at_element(type, from.data(), shift * strides[along]), strides,
                 to.data(), strides);
    sizes[along] = shift;
    copy_strided(type, sizes, from.data(), strides,
                 at_element(type, to.data(), (size - shift) * strides[along]), strides);
    from = std::move(to);
  }
  return Value::reshaped(std::move(from), i.shape);
}

// Copies and reshapes keep the row-major order of the elements.
Value evaluate_reshape(Step& step) {
  if (step.operands[0].shape().is_tuple()) return std::move(step.operands[0]);
  return Value::reshaped(std::move(step.operands[0]), step.instruction.shape);
}

}  // namespace lamella::hlo
