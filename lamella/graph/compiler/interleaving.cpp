// Interleaving: alternates the instructions of several vectors.
#include "lamella/graph/compiler/interleaving.h"

#include <unordered_map>

namespace lamella::hlo::compiler {
namespace {

// The registers hold the tables of a function and the values of two vectors, not more.
constexpr size_t kSideBySide = 2;
using Instructions = std::vector<llvm::Instruction*>;

void interleave(const std::vector<Instructions>& parts, llvm::BasicBlock* block) {
  std::unordered_map<const llvm::Value*, size_t> part_of;
  for (size_t p = 0; p < parts.size(); ++p) {
    for (llvm::Instruction* i : parts[p]) part_of.emplace(i, p);
  }
  std::vector<size_t> done(parts.size(), 0);
  auto place = [&](auto& self, size_t p) -> void {
    llvm::Instruction* i = parts[p][done[p]];
    for (const llvm::Value* operand : i->operands()) {
      // An operand from another part must be placed first.
      auto found = part_of.find(operand);
      if (found == part_of.end() || found->second == p) continue;
      while (part_of.count(operand) != 0) self(self, found->second);
    }
    ++done[p];
    part_of.erase(i);
    i->moveBefore(*block, block->end());
  };
  for (bool more = true; more;) {
    more = false;
    for (size_t p = 0; p < parts.size(); ++p) {
      if (done[p] == parts[p].size()) continue;
      place(place, p);
      more = true;
    }
  }
}

}  // namespace

void Interleaving::next() {
  if (b_.GetInsertBlock() == block_) before_.push_back(last());
}

void Interleaving::finish() {
  if (b_.GetInsertBlock() != block_ || before_.size() < 2) return;
  std::vector<Instructions> parts;
  for (size_t p = 0; p < before_.size(); ++p) {
    Instructions& part = parts.emplace_back();
    auto at = before_[p] == nullptr ? block_->begin() : std::next(before_[p]->getIterator());
    llvm::Instruction* end = p + 1 < before_.size() ? before_[p + 1] : last();
    for (; end != nullptr && at != block_->end(); ++at) {
      part.push_back(&*at);
      if (&*at == end) break;
    }
  }
  for (size_t first = 0; first < parts.size(); first += kSideBySide) {
    auto begin = parts.begin() + static_cast<std::ptrdiff_t>(first);
    auto end =
        parts.begin() + static_cast<std::ptrdiff_t>(std::min(first + kSideBySide, parts.size()));
    interleave({begin, end}, block_);
  }
}

}  // namespace lamella::hlo::compiler
