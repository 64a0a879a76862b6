// Merges and removes instructions that only move elements.
#include "lamella/graph/passes/simplify_movement.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "lamella/graph/passes/rewriter.h"

namespace lamella::hlo {
namespace {

using Numbers = std::vector<int64_t>;

Numbers dimensions_of(const Instruction* i) {
  auto given = i->integers(AttributeKey::Dimensions);
  return {given.begin(), given.end()};
}

Instruction* reshape(Rewriter& to, Instruction* i) {
  Instruction* x = i->operands[0];
  if (x->shape->same_dimensions(*i->shape)) return x;
  if (x->opcode != Opcode::Reshape) return nullptr;
  return to.reshape(x->operands[0],
                    Numbers(i->shape->dimensions().begin(), i->shape->dimensions().end()));
}

Instruction* transpose(Rewriter& to, Instruction* i) {
  Instruction* x = i->operands[0];
  Numbers order = dimensions_of(i), kept;
  Numbers sizes(i->shape->dimensions().begin(), i->shape->dimensions().end());
  for (int64_t d : order) {
    if (x->shape->dimension(d) != 1) kept.push_back(d);
  }
  if (std::ranges::is_sorted(order)) return x;
  if (std::ranges::is_sorted(kept)) return to.reshape(x, sizes);
  if (x->opcode == Opcode::Transpose) {
    Numbers first = dimensions_of(x), both;
    for (int64_t d : order) both.push_back(first[static_cast<size_t>(d)]);
    return to.transpose(x->operands[0], both);
  }
  // Transposes before the reshape instead; dimensions of size 1 keep their positions there.
  if (moves_ones(*x) && x->operands[0]->opcode != Opcode::Parameter) {
    Instruction* y = x->operands[0];
    Numbers theirs, places(static_cast<size_t>(x->shape->rank()), -1), moved;
    for (int64_t d = 0; d < y->shape->rank(); ++d) {
      if (y->shape->dimension(d) != 1) theirs.push_back(d);
    }
    size_t n = 0;
    for (int64_t d = 0; d < x->shape->rank(); ++d) {
      if (x->shape->dimension(d) != 1) places[static_cast<size_t>(d)] = theirs[n++];
    }
    n = 0;
    for (int64_t d = 0; d < y->shape->rank(); ++d) {
      moved.push_back(y->shape->dimension(d) == 1 ? d : places[static_cast<size_t>(kept[n++])]);
    }
    return to.reshape(to.transpose(y, moved), sizes);
  }
  return nullptr;
}

Instruction* broadcast(Rewriter& to, Instruction* i) {
  Instruction* x = i->operands[0];
  Numbers dims = dimensions_of(i);
  if (x->shape->same_dimensions(*i->shape) && std::ranges::is_sorted(dims)) return x;
  if (x->opcode == Opcode::Broadcast) {
    Numbers both;
    for (int64_t d : dimensions_of(x)) both.push_back(dims[static_cast<size_t>(d)]);
    return to.broadcast(x->operands[0], *i->shape, both);
  }
  // The broadcast can add the dimensions of size 1 that a reshape adds.
  if (moves_ones(*x) && x->operands[0]->shape->elements() != 0) {
    Instruction* y = x->operands[0];
    Numbers sizes = without_ones(*y->shape), places;
    for (int64_t d = 0; d < x->shape->rank(); ++d) {
      if (x->shape->dimension(d) != 1) places.push_back(dims[static_cast<size_t>(d)]);
    }
    bool has_ones = static_cast<int64_t>(sizes.size()) != y->shape->rank();
    if (has_ones && static_cast<int64_t>(sizes.size()) == x->shape->rank()) return nullptr;
    return to.broadcast(to.reshape(y, sizes), *i->shape, places);
  }
  return nullptr;
}

// True if a slice selects the whole operand.
bool is_whole(const Instruction& slice) {
  int64_t d = 0;
  for (const SliceDimension& one : slice.find(AttributeKey::Slice)->slices()) {
    int64_t size = slice.operand_shape(0).dimension(d++);
    if (one.start != 0 || one.limit != size || one.stride != 1) return false;
  }
  return true;
}
bool pads_nothing(const Instruction& pad) {
  return std::ranges::all_of(pad.find(AttributeKey::Padding)->padding(),
                             [](const PaddingDimension& one) {
                               return one.low == 0 && one.high == 0 && one.interior == 0;
                             });
}

Instruction* simpler(Rewriter& to, Instruction* i) {
  // A barrier prevents recomputation that saves memory, which no pass here does.
  if (i->opcode == Opcode::OptimizationBarrier) return i->operands[0];
  if (i->opcode == Opcode::GetTupleElement) {
    Instruction* tuple = i->operands[0];
    return tuple->opcode == Opcode::Tuple
               ? tuple->operands[static_cast<size_t>(i->integer(AttributeKey::Index))]
               : nullptr;
  }
  if (!i->shape->is_array() || !i->shape->is_static() || i->operands.empty() ||
      !i->operands[0]->shape->is_array() || !i->operands[0]->shape->is_static()) {
    return nullptr;
  }
  switch (i->opcode) {
    case Opcode::Reshape:
      return reshape(to, i);
    case Opcode::Transpose:
      return transpose(to, i);
    case Opcode::Broadcast:
      return broadcast(to, i);
    case Opcode::Copy:
      return i->operands[0];
    case Opcode::Slice:
      return is_whole(*i) ? i->operands[0] : nullptr;
    case Opcode::Pad:
      return pads_nothing(*i) ? i->operands[0] : nullptr;
    case Opcode::Concatenate:
      return i->operands.size() == 1 ? i->operands[0] : nullptr;
    case Opcode::Reverse:
      return std::ranges::all_of(i->integers(AttributeKey::Dimensions),
                                 [&](int64_t d) { return i->shape->dimension(d) == 1; })
                 ? i->operands[0]
                 : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

int64_t simplify_movement(Module& module) {
  int64_t changed = 0;
  for (Computation* computation : module.computations) {
    Rewriter rewriter(module, *computation);
    changed += rewriter.rewrite([&](Instruction* i) { return simpler(rewriter, i); });
  }
  return changed;
}

}  // namespace lamella::hlo
