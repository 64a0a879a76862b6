// The buffers of a custom call: their shapes and layouts, and which of them share memory.
//
// Note [Buffers of a custom call]
//   Operands and results are split into leaves (arrays and tokens) in preorder. A leaf has the
//   layout that the callee expects. If operand_layout_constraints is present, it gives the layouts
//   of the operands, and the instruction's shape gives that of the result. In a scheduled module
//   (is_scheduled) without it, the shapes of the operands and of the instruction give the layouts.
//   Otherwise the compiler may choose, as in XLA, and all leaves are row-major. Values are
//   row-major, so a leaf of another layout is passed in a temporary, which is rearranged before or
//   after the call.
//   output_to_operand_aliasing puts a result leaf in the memory of an operand leaf. The callee
//   writes there, so this is the operand's own memory only if the operand is unique; otherwise the
//   operand is copied before the call.
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
  // Rearranges to and from the layout of `shape`, which must be an array.
  explicit Rearrangement(const Shape& shape);
  // False if the order of elements in the layout is row-major.
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
  const Shape* shape;  // with the layout that the callee expects
  size_t operand = 0;  // of operand leaves: the number of the operand
  Rearrangement rearrangement;
  int64_t alias = -1;  // of result leaves: the operand leaf whose memory it uses, or -1
};

class CallBuffers {
 public:
  // The buffers of an instruction of a verified module. Throws an Error that names the instruction
  // if two outputs alias the same memory.
  explicit CallBuffers(const Instruction& instruction);

  const std::vector<BufferLeaf>& operands() const { return operands_; }
  const std::vector<BufferLeaf>& results() const { return results_; }
  // True if the data of the operands can be passed as they are: there are no tuples among the
  // operands, no rearrangements and no aliasing.
  bool plain() const { return plain_; }
  // The shape of the instruction's result.
  const Shape* result_shape() const { return result_shape_; }

 private:
  std::vector<BufferLeaf> operands_;
  std::vector<BufferLeaf> results_;
  const Shape* result_shape_;
  bool plain_ = true;
};

// The buffers of one running call.
class BoundBuffers {
 public:
  // Moves array operands out of `operands`, so that results may use the memory of unique ones.
  BoundBuffers(const CallBuffers& buffers, std::span<Value> operands);
  // The pointers for the callee, one per leaf; NULL for tokens.
  std::span<void* const> operands() const { return operand_data_; }
  std::span<void* const> results() const { return result_data_; }
  // Returns the value of the instruction; must be called after the callee has returned.
  Value finish();

 private:
  const CallBuffers& buffers_;
  std::vector<Value> held_;           // temporaries and operands
  std::vector<Value> result_leaves_;  // in the layout of the callee
  std::vector<void*> operand_data_;
  std::vector<void*> result_data_;
};

}  // namespace lamella::hlo
