// UnitPlan: chooses the values that are written to memory, and groups them into units.
#include "lamella/graph/compiler/units.h"

#include <algorithm>
#include <set>

#include "lamella/core/error.h"
#include "lamella/graph/custom_call/function_call.h"
#include "lamella/graph/evaluate/reduce_window.h"

namespace lamella::hlo::compiler {
namespace {

// Weights: the cost of one element, in simple instructions.
constexpr int kCheap = 6;  // values up to this weight are recalculated, not kept
constexpr int kMaxWeight = 1 << 20;
// Instructions that are calculated one inside of the other; the next one is written, so that the
// stack that emitting takes does not grow with the program. Values that only their own unit reads
// stay in registers all the same.
constexpr int kMaxDepth = 32;
// The weight of a unit's instructions, each once. LLVM takes time by the square of a loop's length.
constexpr int kMaxUnitSize = 256;
int own_weight(const Instruction* i) {
  static constexpr int kAll[] = {
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, rule, work, traffic, code, \
                           weight, ...)                                                           \
  weight,
#include "lamella/graph/hlo/opcode.def"
  };
  // Functions that no opcode is cost what others do.
  return kAll[static_cast<size_t>(function_call(*i) != nullptr ? Opcode::Log : i->opcode)];
}

bool is_same_elements(const Instruction* i) {
  return i->opcode == Opcode::Reshape || i->opcode == Opcode::Bitcast || i->opcode == Opcode::Copy;
}
bool is_movement(Opcode opcode) {
  switch (opcode) {
    case Opcode::Broadcast:
    case Opcode::DynamicSlice:
    case Opcode::Gather:
    case Opcode::Pad:
    case Opcode::Reverse:
    case Opcode::Slice:
    case Opcode::Transpose:
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
    case Opcode::Concatenate:
    case Opcode::DynamicUpdateSlice:
      return true;
    default:
      return false;
  }
}
// A large transpose that moves the last dimension. A kernel does it in tiles; a loop would read
// each element from another cache line.
bool is_tiled(const Instruction* i) {
  constexpr int64_t kMinElements = int64_t{1} << 14;
  if (i->opcode != Opcode::Transpose || i->shape->elements() < kMinElements) return false;
  const Instruction* from = i->operands[0];
  while (is_same_elements(from)) from = from->operands[0];
  if (from->opcode == Opcode::Broadcast || from->opcode == Opcode::Iota) return false;
  Extent to(*i->shape), operand(i->operand_shape(0));
  auto last = static_cast<size_t>(to.dimensions.back());
  return i->integers(AttributeKey::Dimensions)[last] != operand.dimensions.back();
}
// Kernels read views of their operands in place.
bool calls_kernel(Opcode opcode) {
  Family family = opcode_family(opcode);
  return family == Family::Contraction || family == Family::CustomCall;
}
// Instructions that are never a part of another's loop.
bool is_apart(const Instruction* i) {
  if (function_call(*i) != nullptr) return false;
  Opcode opcode = i->opcode;
  Family family = opcode_family(opcode);
  return calls_kernel(opcode) || family == Family::Control || family == Family::Fusion ||
         opcode == Opcode::Scatter || opcode == Opcode::SelectAndScatter || opcode == Opcode::Sort;
}
bool is_always_written(const Instruction* i) {
  return is_apart(i) || i->opcode == Opcode::Reduce || i->opcode == Opcode::ReduceWindow ||
         i->opcode == Opcode::Concatenate || i->opcode == Opcode::DynamicUpdateSlice;
}
Unit::Kind kind_of(const Instruction* i) {
  if (is_tiled(i) || is_apart(i)) return Unit::Other;
  switch (i->opcode) {
    case Opcode::Concatenate:
    case Opcode::DynamicUpdateSlice:
      return Unit::Pieces;
    case Opcode::ReduceWindow:
      return is_scan(*i) ? Unit::Other : Unit::Loops;
    default:
      return Unit::Loops;
  }
}

// For a reduction by a single operation of all dimensions from one on: how many are kept.
std::optional<int> kept_rows(const Instruction* i) {
  if (i->opcode != Opcode::Reduce || i->operands.size() != 2) return std::nullopt;
  if (!single_operation(*i->computation(AttributeKey::ToApply))) return std::nullopt;
  Extent from(i->operand_shape(0));
  if (from.elements() == 0 || from.rank() == 0) return std::nullopt;
  auto reduced = i->integers(AttributeKey::Dimensions);
  int rows = -1;
  for (int p = 0; p < from.rank(); ++p) {
    bool yes = std::find(reduced.begin(), reduced.end(), from.dimensions[static_cast<size_t>(p)]) !=
               reduced.end();
    if (yes && rows < 0) rows = p;
    if (!yes && rows >= 0) return std::nullopt;
  }
  if (rows < 0) return std::nullopt;
  return rows;
}

}  // namespace

UnitPlan::UnitPlan(Emitter& emitter, std::span<const Instruction* const> instructions,
                   const std::vector<Wanted>& wanted)
    : e_(emitter), wanted_(wanted) {
  for (const Instruction* i : instructions) {
    if (!Emitter::is_array_constant(i)) inside_.insert(i);
    if (i->opcode == Opcode::CustomCall) find_transposed(i, instructions, wanted);
  }
  find_sums(instructions, wanted);
  choose_written(instructions, wanted);
  weights_.clear();  // of calculating an element with all that it depends on
  for (const Instruction* i : instructions) {
    if (written_.count(i) != 0) add_unit(i);
  }
  // Values that only their own unit reads stay in registers.
  std::unordered_set<const Instruction*> read_elsewhere;
  for (size_t u = 0; u < units.size(); ++u) {
    for (const Member& member : units[u].members) {
      for (const Read& read : member.reads) {
        auto found = unit_of_.find(read.origin);
        if (found != unit_of_.end() && found->second != u) read_elsewhere.insert(read.origin);
      }
    }
  }
  for (const Wanted& one : wanted) {
    size_t leaves = one.places.size();
    for (size_t l = 0; l < leaves; ++l) read_elsewhere.insert(origin(one.instruction, l).first);
  }
  for (Unit& unit : units) {
    for (Member& member : unit.members) {
      member.is_stored = unit.kind != Unit::Loops || read_elsewhere.count(member.instruction) != 0;
    }
    if (unit.rows >= 0) keep_for_later(unit);
  }
}

// Keeps values that are not stored and not cheap, in row memory, for later phases that read them.
void UnitPlan::keep_for_later(Unit& unit) {
  constexpr int64_t kMaxBytes = int64_t{64} << 10;
  int64_t elements = 1, bytes = 0;
  for (size_t p = static_cast<size_t>(unit.rows); p < unit.sizes.size(); ++p) {
    elements *= unit.sizes[p];
  }
  // The weight of calculating a value again, with the values of the unit that are not in memory.
  std::unordered_map<const Instruction*, int> again;
  for (Member& member : unit.members) {
    if (member.level != Member::Full || member.is_stored) continue;
    int weight = weight_of(member.instruction);
    for (const Read& read : member.reads) {
      auto other = again.find(read.origin);
      if (other != again.end()) weight = std::min(weight + other->second, kMaxWeight);
    }
    again[member.instruction] = weight;
    if (!member.instruction->shape->is_array() || weight <= kCheap) continue;
    bool later = false;
    for (const Member& other : unit.members) {
      for (const Read& read : other.reads) {
        later = later || (read.origin == member.instruction && other.phase > member.phase);
      }
    }
    int64_t own = elements * element_bytes(member.instruction->shape->element_type());
    if (!later || bytes + own > kMaxBytes) continue;
    member.is_kept = true;
    again.erase(member.instruction);
    bytes += (own + 63) / 64 * 64;
  }
}

Unit::Kind UnitPlan::kind(const Instruction* i) const {
  if (e_.on_device) return Unit::Loops;
  return sums.count(i) != 0 ? Unit::Other : kind_of(i);
}

bool UnitPlan::is_alias(const Instruction* i) const {
  if (exchanged.count(i) != 0) return true;
  if (i->opcode == Opcode::Tuple || i->opcode == Opcode::GetTupleElement) return true;
  return is_same_elements(i) && is_placed(i->operands[0]);
}

std::pair<const Instruction*, size_t> UnitPlan::origin(const Instruction* i, size_t leaf) const {
  for (;;) {
    bool unchanged = i->opcode == Opcode::While && !is_given(i) && is_invariant(i, leaf);
    if (unchanged) {
      i = i->operands[0];
      continue;
    }
    if (is_given(i) || written_.count(i) != 0) break;
    switch (i->opcode) {
      case Opcode::GetTupleElement: {
        auto index = static_cast<size_t>(i->integer(AttributeKey::Index));
        const std::vector<Shape>& shapes = i->operand_shape(0).tuple_shapes();
        for (size_t e = 0; e < index; ++e) leaf += leaf_count(shapes[e]);
        i = i->operands[0];
        break;
      }
      case Opcode::Tuple: {
        size_t n = 0;
        while (leaf >= leaf_count(i->operand_shape(n))) leaf -= leaf_count(i->operand_shape(n++));
        i = i->operands[n];
        break;
      }
      default:
        i = i->operands[0];
    }
  }
  return {i, leaf};
}

int UnitPlan::weight_of(const Instruction* i) {
  auto known = weights_.find(i);
  if (known != weights_.end()) return known->second;
  int64_t weight = own_weight(i);
  if (i->opcode == Opcode::ReduceWindow) {
    int64_t places = 1;
    for (const WindowDimension& w : i->find(AttributeKey::Window)->window()) places *= w.size;
    weight = 4 * places;
  } else if (!is_given(i) && kind(i) == Unit::Loops && i->opcode != Opcode::Reduce) {
    for (const Instruction* operand : i->operands) {
      bool scalar = operand->shape->elements() == 1 && i->shape->elements() > 1;
      if (!scalar) weight += weight_of_reading(operand);
    }
  } else {
    weight = 1;
  }
  return weights_[i] = static_cast<int>(std::min<int64_t>(weight, kMaxWeight));
}

int UnitPlan::weight_of_reading(const Instruction* i) {
  return written_.count(i) != 0 ? 1 : weight_of(i);
}

void UnitPlan::choose_written(std::span<const Instruction* const> instructions,
                              const std::vector<Wanted>& wanted) {
  std::unordered_map<const Instruction*, std::set<int>> classes;  // kinds of read indices
  std::unordered_set<const Instruction*> must;
  int next_class = 0;
  for (const Wanted& one : wanted) {
    if (is_given(one.instruction)) continue;
    needed_.insert(one.instruction);
    must.insert(one.instruction);
  }
  std::unordered_map<const Instruction*, int> depths;
  for (const Instruction* i : instructions) {
    weight_of(i);  // operands first, which it would else visit recursively
    int depth = 0;
    for (const Instruction* operand : i->operands) {
      auto found = depths.find(operand);
      if (found != depths.end()) depth = std::max(depth, found->second + 1);
    }
    if (depth == kMaxDepth) must.insert(i);
    if (depth == kMaxDepth || is_always_written(i)) depth = 0;
    depths[i] = depth;
  }
  for (size_t n = instructions.size(); n-- > 0;) {
    const Instruction* i = instructions[n];
    if (needed_.count(i) == 0) continue;
    auto need = [&](const Instruction* operand, bool written) {
      needed_.insert(operand);
      if (written) must.insert(operand);
    };
    std::set<int>& own = classes[i];
    if (auto sum = sums.find(i); sum != sums.end()) {
      written_.insert(i);
      const Instruction* product = sum->second.product;
      for (size_t n = 0; n < product->operands.size(); ++n) need(side(product, n).base, true);
      need(view(sum->second.row).base, true);
      continue;
    }
    if (kind(i) == Unit::Other && is_tiled(i) && exchanged.count(i) == 0) {
      written_.insert(i);
      need(view(i).base, true);
      continue;
    }
    if (is_apart(i)) {
      written_.insert(i);
      for (size_t n = 0; n < i->operands.size(); ++n) {
        need(calls_kernel(i->opcode) ? side(i, n).base : i->operands[n], true);
      }
      continue;
    }
    switch (i->opcode) {
      case Opcode::Constant:
        if (must.count(i) != 0 && !is_given(i)) written_.insert(i);
        continue;
      case Opcode::Tuple:
        for (const Instruction* operand : i->operands) need(operand, true);
        continue;
      case Opcode::GetTupleElement:
        need(i->operands[0], true);
        continue;
      case Opcode::DynamicUpdateSlice:
        written_.insert(i);
        for (size_t o = 0; o < i->operands.size(); ++o) {
          need(i->operands[o], o == 0);
          classes[i->operands[o]].insert(next_class++);
        }
        continue;
      default:
        break;
    }
    if ((is_same_elements(i) && must.count(i) != 0) || exchanged.count(i) != 0) {
      need(i->operands[0], true);
      continue;
    }
    // A broadcast along leading dimensions reads its operand once for each of them. Windows
    // overlap, so their elements are read more than once.
    bool windows = i->opcode == Opcode::ReduceWindow;
    bool written = must.count(i) != 0 || is_always_written(i) ||
                   (own.size() > 1 && weight_of(i) > kCheap && i->shape->elements() > 1);
    if (written) {
      written_.insert(i);
      own = {next_class++};
    }
    for (size_t o = 0; o < i->operands.size(); ++o) {
      const Instruction* operand = i->operands[o];
      need(operand, windows && o < i->operands.size() / 2);
      std::set<int>& theirs = classes[operand];
      bool scalar = operand->shape->elements() == 1;
      if (scalar) continue;
      if (is_movement(i->opcode)) {
        bool again = i->opcode == Opcode::Broadcast && weight_of(operand) > kCheap &&
                     i->integers(AttributeKey::Dimensions)[0] != 0;
        theirs.insert(next_class++);
        if (again) theirs.insert(next_class++);
        // Each class of the result becomes another class of the operand.
        for (size_t k = 1; k < own.size(); ++k) theirs.insert(next_class++);
      } else {
        theirs.insert(own.begin(), own.end());
      }
    }
  }
}

void UnitPlan::find_reads(const Instruction* i, Access access, int rows, std::vector<Read>* reads,
                          Seen* seen) const {
  if (i->opcode == Opcode::Constant && written_.count(i) == 0) return;
  if (is_placed(i)) {
    size_t leaves = leaf_count(*i->shape);
    for (size_t l = 0; l < leaves; ++l) {
      auto [from, leaf] = origin(i, l);
      if (from->opcode == Opcode::Constant && written_.count(from) == 0) continue;
      reads->push_back({from, leaf, access, rows});
    }
    return;
  }
  if (!seen->insert({i, static_cast<int>(access), rows}).second) return;
  Extent to(*i->shape);
  for (const Instruction* operand : i->operands) {
    Access next = access;
    int next_rows = rows;
    bool scalar = operand->shape->is_array() && operand->shape->elements() == 1;
    if (i->opcode == Opcode::Broadcast && access == Access::Same) {
      // Access is by row if the operand has the leading dimensions of the result in order.
      Extent from(*operand->shape);
      auto dimensions = i->integers(AttributeKey::Dimensions);
      next = Access::Row;
      next_rows = from.rank();
      for (int q = 0; q < from.rank(); ++q) {
        int64_t d = dimensions[static_cast<size_t>(from.dimensions[static_cast<size_t>(q)])];
        if (to.position[static_cast<size_t>(d)] != q) next = Access::Other;
      }
      if (from.rank() == to.rank()) next = Access::Same;
    } else if (is_movement(i->opcode) ||
               (is_same_elements(i) && Extent(*operand->shape).sizes != to.sizes)) {
      next = Access::Other;
    } else if (scalar && to.rank() > 0) {
      next = access == Access::Same ? Access::Row : Access::Other;
      next_rows = 0;
    }
    find_reads(operand, next, next_rows, reads, seen);
  }
}

std::vector<Read> UnitPlan::reads_of(const Instruction* i, int* size) {
  std::vector<Read> reads;
  Seen seen;
  auto measure = [&] {
    for (const auto& [one, access, rows] : seen) *size += own_weight(one);
  };
  bool row_reduction = kept_rows(i).has_value();
  bool loops = kind(i) == Unit::Loops;
  if (loops && i->opcode != Opcode::Reduce) {
    // Looks through the instruction itself, as if it had no place.
    written_.erase(i);
    find_reads(i, Access::Same, 0, &reads, &seen);
    written_.insert(i);
    measure();
    return reads;
  }
  for (size_t o = 0; o < i->operands.size(); ++o) {
    bool same = row_reduction && o == 0;
    find_reads(i->operands[o], same ? Access::Same : Access::Other, 0, &reads, &seen);
  }
  measure();
  return reads;
}

bool UnitPlan::join(Unit& unit, Member member, const std::vector<int64_t>& sizes, int rows) {
  auto at = static_cast<size_t>(&unit - units.data());
  bool row_level = false;
  if (unit.kind != Unit::Loops || unit.members.size() >= 24) return false;
  if (unit.size + member.size > kMaxUnitSize) return false;
  if (member.level == Member::Reduction) {
    if (unit.sizes != sizes || (unit.rows >= 0 && unit.rows != rows)) return false;
  } else if (unit.sizes != sizes) {
    if (unit.rows < 0 || sizes.size() != static_cast<size_t>(unit.rows) ||
        !std::equal(sizes.begin(), sizes.end(), unit.sizes.begin())) {
      return false;
    }
    row_level = true;
    member.level = Member::Row;
  }
  int split = member.level == Member::Reduction ? rows : unit.rows;
  bool related = false;
  for (const Read& read : member.reads) {
    auto found = unit_of_.find(read.origin);
    if (found == unit_of_.end() || found->second != at) {
      // Everything that it reads must be written before the unit begins.
      if (found != unit_of_.end() && found->second > at) return false;
      for (const Member& other : unit.members) {
        for (const Read& theirs : other.reads) {
          related =
              related || (theirs.origin == read.origin && theirs.leaf == read.leaf &&
                          theirs.origin->shape->is_array() && theirs.origin->shape->elements() > 1);
        }
      }
      continue;
    }
    related = true;
    const Member& from =
        *std::find_if(unit.members.begin(), unit.members.end(),
                      [&](const Member& other) { return other.instruction == read.origin; });
    bool fits = false;
    if (from.level == Member::Full) {
      fits = !row_level && read.access == Access::Same;
      member.phase = std::max(member.phase, from.phase);
    } else if (row_level) {
      fits = read.access == Access::Same;
      member.phase = std::max(member.phase, from.phase);
    } else {
      fits = read.access == Access::Row && read.rows == split;
      member.phase = std::max(member.phase, from.phase + 1);
    }
    if (!fits) return false;
  }
  // A unit that is reduced in blocks has one phase; later phases would be other loops.
  if (member.phase > 0 && is_in_blocks(unit.sizes, split)) return false;
  if (!related) return false;
  if (member.level == Member::Reduction) unit.rows = rows;
  unit.weight += weight_of(member.instruction) + 1;
  unit.size += member.size;
  unit_of_[member.instruction] = at;
  unit.members.push_back(std::move(member));
  return true;
}

void UnitPlan::add_unit(const Instruction* i) {
  Member member;
  member.instruction = i;
  member.reads = reads_of(i, &member.size);
  std::vector<int64_t> sizes;
  int rows = -1;
  bool loops = kind(i) == Unit::Loops;
  if (loops) {
    std::optional<int> kept = kept_rows(i);
    if (kept) {
      member.level = Member::Reduction;
      rows = *kept;
      sizes = Extent(i->operand_shape(0)).sizes;
      // The reducing operation costs one more than its operand.
      weights_[i] = weight_of_reading(i->operands[0]) + 1;
    } else {
      const Shape& shape = i->shape->is_tuple() ? i->shape->tuple_shapes()[0] : *i->shape;
      sizes = Extent(shape).sizes;
      if (i->opcode == Opcode::Reduce) {
        int64_t each = std::max<int64_t>(1, i->operand_shape(0).elements()) /
                       std::max<int64_t>(1, shape.elements());
        weights_[i] = static_cast<int>(std::min<int64_t>(each * 2, kMaxWeight));
      }
    }
    // Any other reduction begins a unit of its own, which later members may join.
    bool alone = (i->opcode == Opcode::Reduce && !kept) || i->opcode == Opcode::ReduceWindow;
    for (size_t u = units.size(); !alone && u-- > 0 && units.size() - u <= 12;) {
      if (join(units[u], member, sizes, rows)) return;
    }
  }
  Unit unit;
  unit.kind = kind(i);
  unit.sizes = std::move(sizes);
  unit.rows = rows;
  unit.weight = loops ? weight_of(i) + 1 : 0;
  unit.size = member.size;
  unit.members.push_back(std::move(member));
  unit_of_[i] = units.size();
  units.push_back(std::move(unit));
}

}  // namespace lamella::hlo::compiler
