// The buffers of a custom call: which ones there are, in which layout, and which share memory.
//
// Note [Buffers of a custom call]
//   Operands and results are taken apart into leaves (arrays and tokens) in preorder. A leaf has
//   the layout that the callee expects. With operand_layout_constraints those are the operands'
//   layouts and the instruction's own shape has the result's; so it is without them in a module
//   whose text is final (is_scheduled), by the operands' own shapes. Otherwise layouts are the
//   compiler's to choose, as in XLA, and all are row-major. Values are row-major, so a leaf of
//   another layout is handed over in a temporary, rearranged before or after the call.
//   output_to_operand_aliasing makes a result leaf lie in the memory of an operand leaf. The callee
//   writes there, so the memory is the operand's own only where nobody else can see it; otherwise
//   it is a copy, made before the call.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lamella/graph/hlo/module.h"
#include "lamella/graph/runtime/value.h"

namespace lamella::hlo {

// Moves an array's elements between row-major order and the order of a layout.
class Rearrangement {
 public:
  Rearrangement() = default;
  // To the layout of `shape`, an array.
  explicit Rearrangement(const Shape& shape);
  // False if the layout is row-major, or cannot be told from it.
  bool needed() const { return !sizes_.empty(); }
  void to_layout(const void* row_major, void* laid_out) const { move(row_major, laid_out, true); }
  void from_layout(const void* laid_out, void* row_major) const {
    move(laid_out, row_major, false);
  }

 private:
  void move(const void* from, void* to, bool to_layout) const;

  size_t element_bytes_ = 0;
  std::vector<int64_t> sizes_;    // of dimensions larger than 1, in row-major order
  std::vector<int64_t> strides_;  // in the layout, in elements
};

struct BufferLeaf {
  const Shape* shape;  // with the layout it is handed over in
  size_t operand = 0;  // of operand leaves: which operand
  Rearrangement rearrangement;
  int64_t alias = -1;  // of result leaves: the operand leaf whose memory it takes
};

class CallBuffers {
 public:
  // The buffers of an instruction of a verified module. Throws an Error that names it where two
  // outputs are to take the same memory.
  explicit CallBuffers(const Instruction& instruction);

  const std::vector<BufferLeaf>& operands() const { return operands_; }
  const std::vector<BufferLeaf>& results() const { return results_; }
  // Neither tuples among the operands, nor other layouts, nor aliasing: what the values have is
  // what is handed over.
  bool plain() const { return plain_; }
  // The shape of the instruction's result.
  const Shape* result_shape() const { return result_shape_; }

 private:
  std::vector<BufferLeaf> operands_;
  std::vector<BufferLeaf> results_;
  const Shape* result_shape_;
  bool plain_ = true;
};

// The buffers of one call that is under way.
class BoundBuffers {
 public:
  // Takes operands whose memory becomes a result's.
  BoundBuffers(const CallBuffers& buffers, std::span<Value> operands);
  // What the callee gets, leaf by leaf; NULL for tokens.
  std::span<void* const> operands() const { return operand_data_; }
  std::span<void* const> results() const { return result_data_; }
  // After the call: the instruction's value.
  Value finish();

 private:
  const CallBuffers& buffers_;
  std::vector<Value> held_;           // temporaries and operands
  std::vector<Value> result_leaves_;  // in the layout of the callee
  std::vector<void*> operand_data_;
  std::vector<void*> result_data_;
};

}  // namespace lamella::hlo
