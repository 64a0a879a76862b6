// Calls of kernels from machine code: products, convolutions and attention, on operands where they
// lie, and gradients of windows.
#pragma once
#include "lamella/graph/compiler/frame.h"
#include "lamella/graph/compiler/units.h"

namespace lamella::hlo::compiler {

class KernelCalls {
 public:
  KernelCalls(Frame& frame, const UnitPlan& plan) : frame_(frame), plan_(plan) {}

  // Writes a product, or a convolution that convolution_problem() knows. Its sums begin with the
  // row, if there is one.
  void product_or_convolution(const Instruction* i, const Place& to, const Instruction* row) {
    i->opcode == Opcode::Dot ? product(i, to, row) : convolution(i, to, row);
  }
  // A call that attention_call() knows; its results lie at their places.
  void attention(const Instruction* call);
  // A select-and-scatter that select_scatter() knows.
  void select_and_scatter(const Instruction* i);
  // A transpose, in tiles.
  void transpose(const Instruction* i);

 private:
  void product(const Instruction* dot, const Place& to, const Instruction* row);
  void convolution(const Instruction* i, const Place& to, const Instruction* row);
  // The storage of an operand that may be a constant from call to call; null for others.
  llvm::Value* storage_of(const Place& place);
  // What sums begin with; null: nothing.
  llvm::Value* row_of(const Instruction* row);
  struct Side;
  Side side_of(const Instruction* operand, std::span<const int64_t> batch,
               std::span<const int64_t> sum, std::vector<Place>* made);
  // Memory for the dimensions of a shape in an order.
  Side dense(const Shape& shape, const std::vector<int64_t>& order);
  // Element by element, `order` says which dimension of `from` each dimension of `to` is.
  void copy(const Side& to, const Side& from, const std::vector<int64_t>& order);
  // Numbers among the constants of the code.
  llvm::Constant* numbers_of(const std::vector<int64_t>& numbers);

  Frame& frame_;
  Emitter& e_ = frame_.e;
  const UnitPlan& plan_;
};

}  // namespace lamella::hlo::compiler
