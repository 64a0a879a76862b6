// Computes the bytes in use at each instruction from the live ranges of arrays.
#include "lamella/graph/view/memory.h"

#include <algorithm>
#include <charconv>

#include "lamella/graph/hlo/effects.h"
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

int64_t temporary_bytes(const Instruction& i) {
  constexpr std::string_view kKey = "temporary_bytes=\"";
  std::string_view text = i.text(AttributeKey::FrontendAttributes);
  size_t at = text.find(kKey);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + kKey.size());
  int64_t bytes = 0;
  std::from_chars(text.data(), text.data() + text.size(), bytes);
  return bytes;
}
void append_leaves_of(const Shape& shape, std::vector<const Shape*>* leaves) {
  if (!shape.is_tuple()) {
    leaves->push_back(&shape);
    return;
  }
  for (const Shape& element : shape.tuple_shapes()) append_leaves_of(element, leaves);
}
size_t leaf_count(const Shape& shape) {
  std::vector<const Shape*> leaves;
  append_leaves_of(shape, &leaves);
  return leaves.size();
}
// The number of the first leaf of the element at a tuple index.
size_t leaf_at(const Shape& shape, std::span<const int64_t> place) {
  const Shape* at = &shape;
  size_t leaf = 0;
  for (int64_t n : place) {
    for (size_t e = 0; e < static_cast<size_t>(n); ++e) leaf += leaf_count(at->tuple_shapes()[e]);
    at = &at->tuple_shapes()[static_cast<size_t>(n)];
  }
  return leaf;
}

// A piece of memory and its live range, from instruction `begin` to instruction `end`.
struct Piece {
  int64_t bytes;
  size_t begin, end;
};

class Schedule {
 public:
  explicit Schedule(const Computation& computation) {
    for (const Instruction* i : computation.instructions) add(*i);
    for (size_t piece : held_[index_of(*computation.root)]) pieces_[piece].end = held_.size() - 1;
  }
  std::vector<int64_t> during() const {
    std::vector<int64_t> change(held_.size() + 1, 0);
    for (const Piece& piece : pieces_) {
      change[piece.begin] += piece.bytes;
      change[piece.end + 1] -= piece.bytes;
    }
    for (size_t n = 1; n < change.size(); ++n) change[n] += change[n - 1];
    change.pop_back();
    return change;
  }

 private:
  static size_t index_of(const Instruction& i) { return static_cast<size_t>(i.index); }
  void add(const Instruction& i) {
    size_t n = held_.size();
    for (const Instruction* operand : i.operands) {
      for (size_t piece : held_[index_of(*operand)]) pieces_[piece].end = n;
    }
    held_.push_back(pieces_of(i, n));
  }
  std::vector<size_t> pieces_of(const Instruction& i, size_t n) {
    if (i.opcode == Opcode::Tuple) {
      std::vector<size_t> all;
      for (const Instruction* operand : i.operands) {
        const std::vector<size_t>& theirs = held_[index_of(*operand)];
        all.insert(all.end(), theirs.begin(), theirs.end());
      }
      return all;
    }
    const bool follows_rules = is_well_formed(i);
    if (i.opcode == Opcode::GetTupleElement && follows_rules) {
      const std::vector<size_t>& whole = held_[index_of(*i.operands[0])];
      int64_t place[] = {i.integer(AttributeKey::Index)};
      size_t first = leaf_at(i.operand_shape(0), place);
      auto begin = whole.begin() + static_cast<std::ptrdiff_t>(first);
      return {begin, begin + static_cast<std::ptrdiff_t>(leaf_count(*i.shape))};
    }
    bool is_there = i.opcode == Opcode::Parameter || i.opcode == Opcode::Constant;
    std::vector<const Shape*> leaves;
    append_leaves_of(*i.shape, &leaves);
    std::vector<size_t> made;
    for (const Shape* leaf : leaves) {
      made.push_back(pieces_.size());
      pieces_.push_back({is_there ? 0 : leaf->bytes(), n, n});
    }
    if (i.opcode == Opcode::While && follows_rules) {
      // The loop's state reuses the memory of its operand, except for arrays that are not counted,
      // such as parameters and constants, which must be copied.
      const std::vector<size_t>& state = held_[index_of(*i.operands[0])];
      for (size_t leaf = 0; leaf < made.size(); ++leaf) {
        if (pieces_[state[leaf]].bytes == 0) continue;
        pieces_[made[leaf]].bytes = 0;
        made[leaf] = state[leaf];
      }
    }
    const Attribute* aliasing = i.find(AttributeKey::OutputToOperandAliasing);
    if (aliasing != nullptr && follows_rules) {
      for (const OperandAlias& alias : aliasing->aliases()) {
        const Instruction& operand = *i.operands[static_cast<size_t>(alias.operand)];
        size_t theirs = held_[index_of(operand)][leaf_at(*operand.shape, alias.operand_index)];
        size_t& ours = made[leaf_at(*i.shape, alias.output)];
        pieces_[ours].bytes = 0;
        ours = theirs;
      }
    }
    return made;
  }

  std::vector<Piece> pieces_;
  std::vector<std::vector<size_t>> held_;  // for each instruction, the pieces of its arrays
};

// True for instructions that run a computation step by step, so that its memory use counts.
bool runs_in_steps(const Instruction& i) {
  return i.opcode == Opcode::While || i.opcode == Opcode::Conditional || i.opcode == Opcode::Call;
}

}  // namespace

// Computes the bytes in use during each instruction of a computation, and returns the maximum.
int64_t Memory::add(const Computation& computation) {
  auto [known, is_new] = during_.try_emplace(&computation);
  if (is_new) {
    std::vector<int64_t> during = Schedule(computation).during();
    for (const Instruction* i : computation.instructions) {
      int64_t most = 0;
      if (runs_in_steps(*i)) {
        for_each_called(*i, [&](const Computation& one) { most = std::max(most, add(one)); });
      }
      during[static_cast<size_t>(i->index)] += temporary_bytes(*i) + most;
    }
    known = during_.insert_or_assign(&computation, std::move(during)).first;
  }
  return known->second.empty() ? 0 : *std::ranges::max_element(known->second);
}

Memory::Memory(const Module& module) : peak_(add(*module.entry)) {}

int64_t Memory::during(const Instruction& instruction) const {
  auto found = during_.find(instruction.parent);
  return found == during_.end() ? 0 : found->second[static_cast<size_t>(instruction.index)];
}

}  // namespace lamella::hlo
