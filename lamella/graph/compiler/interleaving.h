// Interleaving: vectors of one step, calculated side by side.
//
// A processor looks ahead some ten instructions for one unit of calculation, and a function of a
// vector is a chain of as many, each of which waits for the one before. Where two vectors are
// calculated one after the other it waits; with their instructions in turn it works on both.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include <vector>

namespace lamella::hlo::compiler {

class Interleaving {
 public:
  explicit Interleaving(llvm::IRBuilder<>& builder) : b_(builder), block_(b_.GetInsertBlock()) {}
  // What is emitted from now on is the next part.
  void next();
  // Puts the instructions of neighbouring parts in turn, operands first. Parts with branches stay
  // one after the other. They may not write what another part reads.
  void finish();

 private:
  llvm::Instruction* last() const { return block_->empty() ? nullptr : &block_->back(); }

  llvm::IRBuilder<>& b_;
  llvm::BasicBlock* block_;
  std::vector<llvm::Instruction*> before_;  // the last instruction in front of each part
};

}  // namespace lamella::hlo::compiler
