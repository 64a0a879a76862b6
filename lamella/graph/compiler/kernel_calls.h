// KernelCalls: calls of kernels from machine code. Products, convolutions and attention take their
// operands as strided views; gradients of windows and tiled transposes are calls, too.
#pragma once
#include "lamella/graph/compiler/frame.h"
#include "lamella/graph/compiler/units.h"

namespace lamella::hlo::compiler {

class KernelCalls {
 public:
  KernelCalls(Frame& frame, const UnitPlan& plan) : frame_(frame), plan_(plan) {}

  // Writes a product, or a convolution that convolution_problem() supports. `row`, if not null, is
  // the initial value of its sums.
  void product_or_convolution(const Instruction* i, const Place& to, const Instruction* row) {
    i->opcode == Opcode::Dot ? product(i, to, row) : convolution(i, to, row);
  }
  // Emits a call that attention_call() recognizes; its results are written to their places.
  void attention(const Instruction* call);
  // Emits a select-and-scatter that select_scatter() supports.
  void select_and_scatter(const Instruction* i);
  // Emits a transpose, done in tiles.
  void transpose(const Instruction* i);

 private:
  void product(const Instruction* dot, const Place& to, const Instruction* row);
  void convolution(const Instruction* i, const Place& to, const Instruction* row);
  // The storage of an operand that may stay the same from call to call; null if it is not an input.
  llvm::Value* storage_of(const Place& place);
  // The pointer to the initial values of sums, or a null pointer.
  llvm::Value* row_of(const Instruction* row);
  struct Side;
  Side side_of(const Instruction* dot, size_t n, std::span<const int64_t> batch,
               std::span<const int64_t> sum, std::vector<Place>* made);
  // New temporary memory for the shape with its dimensions in this order.
  Side dense(const Shape& shape, const std::vector<int64_t>& order);
  // Copies element by element; `order` says which dimension of `from` each dimension of `to` is.
  void copy(const Side& to, const Side& from, const std::vector<int64_t>& order);
  // A constant array of the numbers, beside the code.
  llvm::Constant* numbers_of(const std::vector<int64_t>& numbers);

  Frame& frame_;
  Emitter& e_ = frame_.e;
  const UnitPlan& plan_;
};

}  // namespace lamella::hlo::compiler
