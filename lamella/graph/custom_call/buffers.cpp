// Leaves, layouts and aliasing of custom calls.
#include "lamella/graph/custom_call/buffers.h"

#include <algorithm>

#include "lamella/core/error.h"
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

// Copies elements between two arrays. `runs` and `other` are the dimensions in which they have
// stride 1: elements move in square tiles of the two, so that both sides are read and written a
// cache line at a time.
template <class T>
void move_elements(const T* from, T* to, std::span<const int64_t> sizes,
                   std::span<const int64_t> from_strides, std::span<const int64_t> to_strides,
                   size_t runs, size_t other, size_t d = 0) {
  constexpr int64_t kTile = 16;
  if (d < sizes.size()) {
    const int64_t size = d == runs || d == other ? 1 : sizes[d];
    for (int64_t n = 0; n < size; ++n) {
      move_elements(from + n * from_strides[d], to + n * to_strides[d], sizes, from_strides,
                    to_strides, runs, other, d + 1);
    }
    return;
  }
  if (runs == other) {
    std::copy_n(from, sizes[runs], to);
    return;
  }
  const int64_t rows = sizes[other], columns = sizes[runs];
  const int64_t from_row = from_strides[other], to_column = to_strides[runs];
  for (int64_t row = 0; row < rows; row += kTile) {
    const int64_t row_end = std::min(rows, row + kTile);
    for (int64_t column = 0; column < columns; column += kTile) {
      const int64_t column_end = std::min(columns, column + kTile);
      for (int64_t c = column; c < column_end; ++c) {
        for (int64_t r = row; r < row_end; ++r) to[c * to_column + r] = from[r * from_row + c];
      }
    }
  }
}

struct Sixteen {
  uint64_t halves[2];
};

void add_leaves(const Shape& shape, size_t operand, std::vector<BufferLeaf>* leaves) {
  if (shape.is_tuple()) {
    for (const Shape& one : shape.tuple_shapes()) add_leaves(one, operand, leaves);
    return;
  }
  BufferLeaf leaf{};
  leaf.shape = &shape;
  leaf.operand = operand;
  if (shape.is_array()) leaf.rearrangement = Rearrangement(shape);
  leaves->push_back(std::move(leaf));
}

int64_t count_leaves(const Shape& shape) {
  if (!shape.is_tuple()) return 1;
  int64_t count = 0;
  for (const Shape& one : shape.tuple_shapes()) count += count_leaves(one);
  return count;
}

// The number of the first leaf of the element at a tuple index.
int64_t leaf_at(const Shape& shape, std::span<const int64_t> index) {
  const Shape* part = &shape;
  int64_t leaf = 0;
  for (int64_t n : index) {
    for (int64_t before = 0; before < n; ++before) {
      leaf += count_leaves(part->tuple_shapes()[static_cast<size_t>(before)]);
    }
    part = &part->tuple_shapes()[static_cast<size_t>(n)];
  }
  return leaf;
}
const Shape& part_at(const Shape& shape, std::span<const int64_t> index) {
  const Shape* part = &shape;
  for (int64_t n : index) part = &part->tuple_shapes()[static_cast<size_t>(n)];
  return *part;
}

}  // namespace

Rearrangement::Rearrangement(const Shape& shape) {
  if (shape.is_row_major() || shape.elements() == 0) return;
  element_bytes_ = static_cast<size_t>(lamella::hlo::element_bytes(shape.element_type()));
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()));
  int64_t stride = 1;
  for (int64_t d : shape.minor_to_major()) {
    strides[static_cast<size_t>(d)] = stride;
    stride *= shape.dimension(d);
  }
  int64_t expected = 1;
  bool same = true;
  for (int64_t d = shape.rank(); d-- > 0;) {
    if (shape.dimension(d) == 1) continue;
    same = same && strides[static_cast<size_t>(d)] == expected;
    expected *= shape.dimension(d);
  }
  if (same) return;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (shape.dimension(d) == 1) continue;
    sizes_.push_back(shape.dimension(d));
    strides_.push_back(strides[static_cast<size_t>(d)]);
  }
}

void Rearrangement::move(const void* from, void* to, bool to_layout) const {
  std::vector<int64_t> row_major(sizes_.size(), 1);
  for (size_t d = sizes_.size() - 1; d-- > 0;) row_major[d] = row_major[d + 1] * sizes_[d + 1];
  const auto& from_strides = to_layout ? row_major : strides_;
  const auto& to_strides = to_layout ? strides_ : row_major;
  auto run_of = [](const std::vector<int64_t>& strides) {
    return static_cast<size_t>(std::find(strides.begin(), strides.end(), 1) - strides.begin());
  };
  auto as = [&]<class T>(T) {
    move_elements(static_cast<const T*>(from), static_cast<T*>(to), sizes_, from_strides,
                  to_strides, run_of(from_strides), run_of(to_strides));
  };
  switch (element_bytes_) {
    case 1:
      return as(uint8_t{});
    case 2:
      return as(uint16_t{});
    case 4:
      return as(uint32_t{});
    case 8:
      return as(uint64_t{});
    default:
      return as(Sixteen{});
  }
}

CallBuffers::CallBuffers(const Instruction& i) : result_shape_(i.shape) {
  const Attribute* constraints = i.find(AttributeKey::OperandLayoutConstraints);
  bool own_layouts =
      i.parent != nullptr && i.parent->parent != nullptr && i.parent->parent->is_scheduled;
  std::vector<int64_t> first_leaf;
  for (size_t o = 0; o < i.operands.size(); ++o) {
    const Shape* shape = &i.operand_shape(o);
    if (constraints != nullptr) shape = constraints->shapes()[o];
    first_leaf.push_back(static_cast<int64_t>(operands_.size()));
    add_leaves(*shape, o, &operands_);
    plain_ = plain_ && !shape->is_tuple();
  }
  add_leaves(*i.shape, 0, &results_);
  if (constraints == nullptr && !own_layouts) {
    for (BufferLeaf& leaf : operands_) leaf.rearrangement = Rearrangement();
    for (BufferLeaf& leaf : results_) leaf.rearrangement = Rearrangement();
  }
  if (const Attribute* aliasing = i.find(AttributeKey::OutputToOperandAliasing)) {
    std::vector<bool> taken(operands_.size(), false);
    for (const OperandAlias& alias : aliasing->aliases()) {
      auto operand = static_cast<size_t>(alias.operand);
      int64_t from = first_leaf[operand] + leaf_at(i.operand_shape(operand), alias.operand_index);
      int64_t to = leaf_at(*i.shape, alias.output);
      int64_t count = count_leaves(part_at(*i.shape, alias.output));
      for (int64_t n = 0; n < count; ++n) {
        BufferLeaf& result = results_[static_cast<size_t>(to + n)];
        LAMELLA_HLO_REQUIRE(result.alias < 0, i,
                            "expected output_to_operand_aliasing to name each output once, got ",
                            braced(alias.output), " again");
        LAMELLA_HLO_REQUIRE(!taken[static_cast<size_t>(from + n)], i,
                            "expected output_to_operand_aliasing to name each operand once, got ",
                            alias.operand, ", ", braced(alias.operand_index), " again");
        taken[static_cast<size_t>(from + n)] = true;
        result.alias = from + n;
      }
      plain_ = false;
    }
  }
  for (const auto* leaves : {&operands_, &results_}) {
    for (const BufferLeaf& leaf : *leaves) plain_ = plain_ && !leaf.rearrangement.needed();
  }
}

namespace {

// Appends the leaves of a value in preorder.
void leaves_of(Value value, std::vector<Value>* leaves) {
  if (!value.shape().is_tuple()) {
    leaves->push_back(std::move(value));
    return;
  }
  for (size_t i = 0; i < value.size(); ++i) leaves_of(value.element(i), leaves);
}

Value assemble(const Shape* shape, std::span<Value>* leaves) {
  if (!shape->is_tuple()) {
    Value leaf = std::move(leaves->front());
    *leaves = leaves->subspan(1);
    return leaf;
  }
  std::vector<Value> elements;
  for (const Shape& one : shape->tuple_shapes()) elements.push_back(assemble(&one, leaves));
  return Value::tuple(shape, elements);
}

}  // namespace

BoundBuffers::BoundBuffers(const CallBuffers& buffers, std::span<Value> operands)
    : buffers_(buffers) {
  std::vector<bool> written(buffers.operands().size(), false);
  for (const BufferLeaf& leaf : buffers.results()) {
    if (leaf.alias >= 0) written[static_cast<size_t>(leaf.alias)] = true;
  }
  // Array operands are moved, so that a unique value stays unique. Elements of tuples are never
  // unique, because the tuple refers to them.
  for (Value& operand : operands) {
    if (operand.shape().is_tuple()) {
      leaves_of(operand, &held_);
    } else {
      held_.push_back(std::move(operand));
    }
  }
  for (size_t n = 0; n < held_.size(); ++n) {
    const BufferLeaf& leaf = buffers.operands()[n];
    Value& value = held_[n];
    if (!leaf.shape->is_array()) {
      operand_data_.push_back(nullptr);
      continue;
    }
    if (leaf.rearrangement.needed()) {
      Value laid_out = Value::uninitialized(value.shape_pointer());
      leaf.rearrangement.to_layout(value.data(), laid_out.data());
      value = std::move(laid_out);
    } else if (written[n]) {
      value = Value::writable(std::move(value));
    }
    operand_data_.push_back(value.data());
  }
  for (const BufferLeaf& leaf : buffers.results()) {
    if (!leaf.shape->is_array()) {
      result_leaves_.push_back(Value::token(leaf.shape));
      result_data_.push_back(nullptr);
      continue;
    }
    Value value =
        leaf.alias >= 0 ? held_[static_cast<size_t>(leaf.alias)] : Value::uninitialized(leaf.shape);
    result_data_.push_back(value.data());
    result_leaves_.push_back(std::move(value));
  }
}

Value BoundBuffers::finish() {
  held_.clear();
  for (size_t n = 0; n < result_leaves_.size(); ++n) {
    const BufferLeaf& leaf = buffers_.results()[n];
    if (!leaf.shape->is_array()) continue;
    Value& value = result_leaves_[n];
    if (leaf.rearrangement.needed()) {
      Value row_major = Value::uninitialized(leaf.shape);
      leaf.rearrangement.from_layout(value.data(), row_major.data());
      value = std::move(row_major);
    } else if (leaf.alias >= 0) {
      value = Value::reshaped(std::move(value), leaf.shape);
    }
  }
  std::span<Value> left = result_leaves_;
  return assemble(buffers_.result_shape(), &left);
}

}  // namespace lamella::hlo
