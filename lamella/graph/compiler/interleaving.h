// Interleaving: alternates the instructions of vectors that one step of a loop calculates.
//
// A function of a vector is a chain of dependent instructions, and a processor looks ahead only
// some ten instructions for each execution unit. Two chains one after the other leave it waiting;
// with their instructions alternating it works on both.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include <vector>

namespace lamella::hlo::compiler {

class Interleaving {
 public:
  explicit Interleaving(llvm::IRBuilder<>& builder) : b_(builder), block_(b_.GetInsertBlock()) {}
  // Code emitted from here on is the next part.
  void next();
  // Alternates the instructions of neighbouring parts, operands first. Parts with branches stay in
  // sequence. A part must not write memory that another part reads.
  void finish();

 private:
  llvm::Instruction* last() const { return block_->empty() ? nullptr : &block_->back(); }

  llvm::IRBuilder<>& b_;
  llvm::BasicBlock* block_;
  std::vector<llvm::Instruction*> before_;  // the last instruction before each part
};

}  // namespace lamella::hlo::compiler
