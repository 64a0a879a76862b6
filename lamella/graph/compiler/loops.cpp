// UnitPlan: emits the loops of units.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <tuple>

#include "lamella/core/error.h"
#include "lamella/graph/compiler/interleaving.h"
#include "lamella/graph/compiler/shared_loop.h"
#include "lamella/graph/compiler/units.h"

namespace lamella::hlo::compiler {
namespace {

// Loops of fewer elements may call functions that longer ones have inline.
constexpr int64_t kShortLoop = 4096;
// The least weight of a loop that calls a function such as exp.
constexpr int kFunctionWeight = 16;

// True for a reduction that reduces the last dimension: its lanes run along that dimension.
bool reduces_last(const Instruction* i) {
  if (i->opcode != Opcode::Reduce) return false;
  Extent from(i->operand_shape(0));
  if (from.rank() == 0) return false;
  auto reduced = i->integers(AttributeKey::Dimensions);
  return std::find(reduced.begin(), reduced.end(), from.dimensions.back()) != reduced.end();
}

// True if all stored arrays have elements of four bytes, so that the lanes fill whole vectors.
bool only_four_bytes(const Unit& unit) {
  return std::all_of(unit.members.begin(), unit.members.end(), [](const Member& member) {
    return !member.is_stored || (member.instruction->shape->is_array() &&
                                 element_bytes(member.instruction->shape->element_type()) == 4);
  });
}

// True if a row of `elements` is a few vectors, and a few instructions when unrolled.
bool fits_registers(int64_t elements, int lanes, int weight) {
  constexpr int64_t kMaxVectors = 8, kMaxInstructions = 1024;
  int64_t vectors = (elements + lanes - 1) / lanes;
  return vectors <= kMaxVectors && vectors * weight <= kMaxInstructions;
}

// The number of vectors per step of a loop: functions then share the tables and constants that they
// load.
int vectors_at_once(const Unit& unit) {
  if (unit.weight < kFunctionWeight || unit.weight > 160) return 1;
  return unit.weight < 64 ? 4 : 2;
}

}  // namespace

// The groups of dimensions that the unit walks, without coordinates.
Index UnitPlan::groups_of(const Unit& unit) {
  Cuts cut(unit.sizes.size() + 1, false);
  for (const Member& member : unit.members) {
    Cuts one = member.level == Member::Reduction ? e_.cuts(member.instruction->operands[0])
                                                 : e_.cuts_inside(member.instruction);
    for (size_t p = 0; p < one.size(); ++p) cut[p] = cut[p] || one[p];
  }
  if (unit.rows >= 0) cut[static_cast<size_t>(unit.rows)] = true;
  Index index;
  auto rank = static_cast<int>(unit.sizes.size());
  for (int p = 0; p < rank;) {
    int end = p + 1;
    while (end < rank && !cut[static_cast<size_t>(end)]) ++end;
    index.push_back({p, end - p, {}});
    p = end;
  }
  return index;
}

// The number of lanes, for the widest type that the unit calculates with.
int UnitPlan::lanes_of(const Unit& unit, int64_t size) {
  ElementType widest = ElementType::F32;
  std::unordered_set<const Instruction*> seen;
  auto look = [&](auto& self, const Instruction* i, bool first) -> void {
    if (!seen.insert(i).second) return;
    const Shape& shape = i->shape->is_tuple() ? i->shape->tuple_shapes()[0] : *i->shape;
    if (shape.elements() == 1 && !first) return;
    if (element_bytes(shape.element_type()) > element_bytes(widest)) {
      widest = shape.element_type();
    }
    if (!first && is_placed(i)) return;
    for (const Instruction* operand : i->operands) {
      if (operand->shape->is_array()) self(self, operand, false);
    }
  };
  for (const Member& member : unit.members) look(look, member.instruction, true);
  return e_.natural_lanes(widest, size);
}

void UnitPlan::store_all(const Instruction* i, const Index& index, llvm::Value* value) {
  const std::vector<Place>& to = e_.places.at(i);
  if (i->shape->is_array()) {
    e_.store(to[0], *i->shape, index, value);
    return;
  }
  const std::vector<Shape>& shapes = i->shape->tuple_shapes();
  for (size_t n = 0; n < shapes.size(); ++n) {
    e_.store(to[n], shapes[n], index, n == 0 ? value : e_.recall(i, n, index));
  }
}

// Emits all members at one index. All loads come before any store.
void UnitPlan::emit_elements(Unit& unit, const Index& index, llvm::Value* linear) {
  std::vector<llvm::Value*> values;
  for (const Member& member : unit.members) {
    llvm::Value* value = e_.calculate(member.instruction, index);
    e_.remember(member.instruction, 0, index, value);
    values.push_back(value);
  }
  for (size_t m = 0; m < values.size(); ++m) {
    const Instruction* i = unit.members[m].instruction;
    if (!unit.members[m].is_stored) continue;
    if (linear == nullptr) {
      store_all(i, index, values[m]);
    } else {
      e_.store_at(e_.places.at(i)[0], i->shape->element_type(), {linear, 1, nullptr}, values[m]);
    }
  }
}

// True if the last dimension, a group of its own, is too short for vectors, while the calculation
// is heavy enough to justify dividing each lane's index.
bool UnitPlan::is_walked_flat(const Unit& unit, const Index& index, int64_t last) {
  constexpr int64_t kMinRows = 16;
  if (unit.rows >= 0 || index.size() < 2 || unit.weight < kFunctionWeight) return false;
  Extent extent(Shape::array(ElementType::F32, unit.sizes));
  if (extent.elements() < kMinRows * last || extent.elements() > INT32_MAX) return false;
  for (const Member& member : unit.members) {
    Opcode opcode = member.instruction->opcode;
    if (opcode == Opcode::Reduce || opcode == Opcode::ReduceWindow) return false;
    if (!member.instruction->shape->is_array()) return false;
  }
  return last * 2 <= lanes_of(unit, extent.elements());
}

// Emits one row, phase by phase. The first `outer` groups of the index are the row's and have their
// coordinates.
void UnitPlan::emit_row(Unit& unit, Index& index, size_t outer) {
  Index row(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(outer));
  Extent extent(Shape::array(ElementType::F32, unit.sizes));
  size_t levels = index.size() - outer;
  int64_t size = 1;
  if (levels > 0) size = extent.product(index.back().first, index.back().count);
  int phases = 0;
  for (const Member& member : unit.members) phases = std::max(phases, member.phase + 1);
  int lanes_before = e_.lanes;
  for (int phase = 0; phase < phases; ++phase) {
    struct Sum {
      const Member* member;
      Opcode opcode;
      ElementType type;
      llvm::Value* identity;
      std::vector<llvm::Value*> parts;
    };
    std::vector<Sum> sums;
    std::vector<const Member*> full;
    e_.lanes = lanes_of(unit, size);
    int weight = 0;
    for (const Member& member : unit.members) {
      if (member.phase != phase) continue;
      if (member.level == Member::Full) full.push_back(&member);
      if (member.level != Member::Row) weight += weights_[member.instruction];
      if (member.level != Member::Reduction) continue;
      const Instruction* i = member.instruction;
      Sum sum{&member,
              *single_operation(*i->computation(AttributeKey::ToApply)),
              i->shape->element_type(),
              nullptr,
              {}};
      sum.type = Emitter::reduction_type(sum.opcode, sum.type);
      sum.identity = e_.reduce_identity(sum.opcode, sum.type);
      if (e_.lanes > 1) sum.identity = e_.splat(sum.identity);
      sums.push_back(std::move(sum));
    }
    if (!full.empty() || !sums.empty()) {
      int unroll = !sums.empty() && size >= 4 * e_.lanes && weight < 64 ? 4 : 1;
      for (Sum& sum : sums) {
        for (int u = 0; u < unroll; ++u) {
          sum.parts.push_back(e_.variable(sum.identity->getType()));
          e_.b.CreateStore(sum.identity, sum.parts.back());
        }
      }
      auto elements = [&](int part) {
        std::vector<std::pair<const Member*, llvm::Value*>> stores;
        size_t next_sum = 0;
        for (const Member& member : unit.members) {
          if (member.phase != phase || member.level == Member::Row) continue;
          const Instruction* i = member.instruction;
          if (member.level == Member::Full) {
            llvm::Value* value = e_.calculate(i, index);
            e_.remember(i, 0, index, value);
            if (member.is_kept && !in_registers_) e_.keep_in_row(i, index, value);
            if (member.is_stored) stores.emplace_back(&member, value);
            continue;
          }
          Sum& sum = sums[next_sum++];
          llvm::Value* x = e_.value(i->operands[0], index);
          if (e_.lanes > 1 && !x->getType()->isVectorTy()) x = e_.splat(x);
          x = e_.to_reduction(sum.opcode, i->shape->element_type(), x);
          if (e_.mask != nullptr) x = e_.b.CreateSelect(e_.mask, x, sum.identity);
          llvm::Value* to = sum.parts[static_cast<size_t>(part)];
          llvm::Value* before = e_.b.CreateLoad(x->getType(), to);
          e_.b.CreateStore(e_.combine(sum.opcode, sum.type, before, x), to);
        }
        for (auto [member, value] : stores) store_all(member->instruction, index, value);
      };
      auto nest = [&](auto& self, size_t level) -> void {
        if (levels == 0) return elements(0);
        Group& g = index[outer + level];
        int64_t n = extent.product(g.first, g.count);
        if (level + 1 < levels) {
          e_.loop(e_.i64(0), e_.i64(n), 1, [&](llvm::Value* at) {
            g.at = e_.uniform(at);
            self(self, level + 1);
          });
          return;
        }
        auto each = [&](llvm::Value* at, int part) {
          g.at = {at, e_.lanes > 1 ? 1 : 0, nullptr};
          elements(part);
        };
        e_.along_lanes(n, unroll, each, in_registers_);
      };
      if (!in_registers_) e_.begin_scope();
      nest(nest, 0);
      if (!in_registers_) e_.end_scope();
    }
    e_.lanes = 1;
    for (Sum& sum : sums) {
      const Instruction* i = sum.member->instruction;
      llvm::Value* result = nullptr;
      for (llvm::Value* part : sum.parts) {
        llvm::Value* x = e_.b.CreateLoad(sum.identity->getType(), part);
        result = result == nullptr ? x : e_.combine(sum.opcode, sum.type, result, x);
      }
      result = e_.across_lanes(sum.opcode, sum.type, result);
      ElementType type = i->shape->element_type();
      llvm::Value* start = e_.to_reduction(sum.opcode, type, e_.value(i->operands[1], {}));
      result = e_.combine(sum.opcode, sum.type, start, result);
      result = e_.narrowed(type, e_.from_reduction(sum.opcode, type, result));
      e_.remember(i, 0, row, result);
      if (sum.member->is_stored) store_all(i, row, result);
    }
    for (const Member& member : unit.members) {
      if (member.phase != phase || member.level != Member::Row) continue;
      llvm::Value* value = e_.calculate(member.instruction, row);
      e_.remember(member.instruction, 0, row, value);
      if (member.is_stored) store_all(member.instruction, row, value);
    }
  }
  e_.lanes = lanes_before;
}

// Emits rows `begin` to `end` of the outer groups or, without rows, elements of the only group.
// Short rows are done two at a time: a row is a chain of reductions, and the other row fills its
// waits.
void UnitPlan::emit_range(Unit& unit, Index& index, size_t outer, llvm::Value* begin,
                          llvm::Value* end) {
  llvm::Value* single = begin;
  if (in_registers_) {
    llvm::Value* odd = e_.b.CreateAnd(e_.b.CreateSub(end, begin), e_.i64(1));
    single = e_.b.CreateSub(end, odd);
    e_.loop(begin, single, 2, [&](llvm::Value* at) {
      Interleaving rows(e_.b);
      rows.next();
      emit_step(unit, index, outer, at);
      rows.next();
      emit_step(unit, index, outer, e_.b.CreateAdd(at, e_.i64(1), "", false, true));
      rows.finish();
    });
  }
  e_.loop(single, end, 1, [&](llvm::Value* at) { emit_step(unit, index, outer, at); });
}

void UnitPlan::emit_step(Unit& unit, Index& index, size_t outer, llvm::Value* at) {
  Extent extent(Shape::array(ElementType::F32, unit.sizes));
  // Splits the row's number into coordinates.
  int64_t apart = 1;
  for (size_t g = outer; g-- > 0;) {
    int64_t size = extent.product(index[g].first, index[g].count);
    llvm::Value* own = at;
    if (apart != 1) own = e_.b.CreateUDiv(own, e_.i64(apart));
    if (g != 0) own = e_.b.CreateURem(own, e_.i64(size));
    index[g].at = e_.uniform(own);
    apart *= size;
  }
  if (unit.rows >= 0) {
    emit_row(unit, index, outer);
    return;
  }
  if (outer == index.size()) {
    emit_elements(unit, index);
    return;
  }
  Group& last = index.back();
  e_.along_lanes(extent.product(last.first, last.count), vectors_at_once(unit),
                 [&](llvm::Value* where, int) {
                   last.at = {where, e_.lanes > 1 ? 1 : 0, nullptr};
                   emit_elements(unit, index);
                 });
}

void UnitPlan::make_row_memory(const Unit& unit, const Member& member) {
  ElementType type = member.instruction->shape->element_type();
  int64_t elements = 1;
  for (size_t p = static_cast<size_t>(unit.rows); p < unit.sizes.size(); ++p) {
    elements *= unit.sizes[p];
  }
  auto* row = llvm::ArrayType::get(e_.memory_type(type), static_cast<uint64_t>(elements + 64));
  auto* data = llvm::cast<llvm::AllocaInst>(e_.variable(row));
  data->setAlignment(llvm::Align(64));
  e_.row_memory[member.instruction] = {data, unit.rows};
}

void UnitPlan::emit_loops(Unit& unit) {
  Extent extent(Shape::array(ElementType::F32, unit.sizes));
  if (extent.elements() == 0) return;
  e_.is_short_loop = extent.elements() < kShortLoop;
  Index index = groups_of(unit);
  size_t outer = 0;
  if (unit.rows >= 0) {
    while (outer < index.size() && index[outer].first < unit.rows) ++outer;
  } else if (!index.empty()) {
    outer = index.size() - 1;
  }
  int64_t last = index.empty() ? 1 : extent.product(index.back().first, index.back().count);
  int64_t rows = 1;
  for (size_t g = 0; g < outer; ++g) rows *= extent.product(index[g].first, index[g].count);
  bool single = false;
  for (const Member& member : unit.members) single = single || reduces_last(member.instruction);
  single = single && unit.rows < 0;
  if (single && !index.empty()) {
    outer = index.size();
    rows = extent.elements();
  }
  int lanes = single || unit.rows >= 0 ? 1 : lanes_of(unit, last);
  // Sums of columns read several cache lines of each row: more of them where an element of the
  // operand costs few instructions and the threads still have columns to share.
  const Instruction* first = unit.members[0].instruction;
  if (!single && unit.rows < 0 && first->opcode == Opcode::Reduce) {
    const bool is_light = first->operands.size() == 2 && weight_of_reading(first->operands[0]) <= 4;
    for (int n = 0; n < (is_light ? 4 : 2) && (n < 2 ? 2 : 8) * lanes <= last; ++n) lanes *= 2;
  }
  // All dimensions as one; each lane divides its index into coordinates of the groups.
  const bool flat = is_walked_flat(unit, index, last);
  const Index groups = index;
  if (flat) {
    outer = 0;
    rows = 1;
    last = extent.elements();
    lanes = lanes_of(unit, last);
    index = {{0, extent.rank(), {}}};
  }
  e_.forget_cuts();
  if (is_in_blocks(unit.sizes, unit.rows) && index.size() == 1) return emit_blocks(unit, index);

  int64_t each = std::max(1, unit.weight / 2);
  bool shared = extent.elements() > kWorkOfTask / each;
  // The threads share rows, or steps of vectors of the only group.
  bool by_rows = outer > 0 || unit.rows >= 0;
  int at_once = by_rows ? 1 : vectors_at_once(unit);
  int64_t count = by_rows ? rows : (last + lanes * at_once - 1) / (lanes * at_once);
  int64_t work = by_rows ? extent.elements() / rows : lanes * at_once;
  int64_t grain = std::max<int64_t>(1, kWorkOfTask / each / std::max<int64_t>(1, work));
  shared = shared && count > grain;

  llvm::Value *begin = e_.i64(0), *end = e_.i64(count);
  SharedLoop function;
  if (shared) std::tie(begin, end) = function.begin(e_);
  e_.lanes = lanes;
  // Streaming stores need whole vectors that are aligned: rows of whole vectors, or a single row.
  // Small results should stay in the caches for their consumer, and loops that calculate much gain
  // nothing.
#if defined(__x86_64__)
  e_.streams = shared && unit.rows < 0 && lanes > 1 && unit.weight < kFunctionWeight &&
               (outer == 0 || last * 4 % e_.vector_bytes == 0) &&
               extent.elements() * 4 >= kLargeBytes && only_four_bytes(unit);
#endif
  e_.begin_scope();
  in_registers_ = unit.rows >= 0 && rows > 1 && index.size() == outer + 1 &&
                  fits_registers(last, lanes_of(unit, last), unit.weight);
  for (const Member& member : unit.members) {
    if (member.is_kept && !in_registers_) make_row_memory(unit, member);
  }
  auto elements = [&](llvm::Value* at) {
    if (flat) {
      emit_elements(unit, e_.in_groups(extent, groups, at), at);
      return;
    }
    index[0].at = {at, lanes > 1 ? 1 : 0, nullptr};
    emit_elements(unit, index);
  };
  if (index.empty() && unit.rows < 0) {
    emit_elements(unit, index);
  } else if (by_rows) {
    if (rows == 1 && !shared) {
      for (size_t g = 0; g < outer; ++g) index[g].at = e_.uniform(e_.i64(0));
      begin = e_.i64(0);
      end = e_.i64(1);
    }
    emit_range(unit, index, outer, begin, end);
  } else if (!shared) {
    e_.along_lanes(last, at_once, [&](llvm::Value* at, int) { elements(at); });
  } else {
    // Whole steps; the call whose range includes the last step does the rest.
    int64_t step = int64_t{lanes} * at_once, whole = last / step;
    llvm::Value* most = e_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, e_.i64(whole));
    e_.loop(begin, most, 1, [&](llvm::Value* at) {
      llvm::Value* first = e_.b.CreateMul(at, e_.i64(step), "", false, true);
      Interleaving parts(e_.b);
      for (int part = 0; part < at_once; ++part) {
        parts.next();
        elements(e_.b.CreateAdd(first, e_.i64(int64_t{part} * lanes), "", false, true));
      }
      parts.finish();
    });
    if (whole * step != last) {
      e_.loop(e_.i64(whole), end, 1, [&](llvm::Value*) {
        e_.along_lanes(last - whole * step, 1, [&](llvm::Value* at, int) {
          elements(e_.b.CreateAdd(at, e_.i64(whole * step), "", false, true));
        });
      });
    }
  }
  e_.end_scope();
  e_.lanes = 1;
  in_registers_ = false;
  for (const Member& member : unit.members) {
    if (member.is_kept) e_.row_memory.erase(member.instruction);
  }
  if (e_.streams) e_.b.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  e_.streams = false;
  if (shared) function.end(e_, count, grain);
}

// ---- Pieces: concatenate and dynamic-update-slice ----

void UnitPlan::emit_pieces(Unit& unit, const std::function<void()>& written) {
  const Instruction* i = unit.members[0].instruction;
  const Place to = e_.places.at(i)[0];
  const Shape& shape = *i->shape;
  Extent whole(shape);
  // Writes a piece whose first element is at `starts`.
  auto write = [&](const Instruction* piece, const std::vector<Lane>& starts) {
    Extent extent(*piece->shape);
    if (extent.elements() == 0) return;
    e_.is_short_loop = extent.elements() < kShortLoop;
    Cuts cut = e_.cuts(piece);
    // Dimensions of the piece that span the whole result stay in one group.
    for (int p = 1; p < extent.rank(); ++p) {
      auto d = static_cast<size_t>(extent.dimensions[static_cast<size_t>(p)]);
      bool all = shape.dimension(static_cast<int64_t>(d)) == extent.sizes[static_cast<size_t>(p)];
      bool next =
          whole.position[d] ==
          whole.position[static_cast<size_t>(extent.dimensions[static_cast<size_t>(p - 1)])] + 1;
      if (!all || !next) cut[static_cast<size_t>(p)] = true;
    }
    Index index;
    for (int p = 0; p < extent.rank();) {
      int end = p + 1;
      while (end < extent.rank() && !cut[static_cast<size_t>(end)]) ++end;
      index.push_back({p, end - p, {}});
      p = end;
    }
    // The offset of the piece in the result, in elements.
    llvm::Value* origin = e_.i64(0);
    for (size_t d = 0; d < starts.size(); ++d) {
      int p = whole.position[d];
      if (p < 0) continue;
      origin = e_.plus(e_.uniform(origin), e_.times(starts[d], whole.stride(p))).base;
    }
    auto store = [&] {
      llvm::Value* value = e_.value(piece, index);
      Lane at = e_.uniform(origin);
      for (const Group& g : index) {
        auto d = static_cast<size_t>(extent.dimensions[static_cast<size_t>(g.first + g.count - 1)]);
        at = e_.plus(at, e_.times(g.at, whole.stride(whole.position[d])));
      }
      e_.store_at(to, shape.element_type(), at, value);
    };
    Unit walked;
    walked.sizes = extent.sizes;
    Member member;
    member.instruction = piece;
    walked.members.push_back(member);
    e_.begin_scope();
    if (index.empty()) {
      store();
    } else {
      Group& last = index.back();
      int64_t size = extent.product(last.first, last.count);
      e_.lanes = lanes_of(walked, size);
      auto nest = [&](auto& self, size_t level) -> void {
        Group& g = index[level];
        int64_t n = extent.product(g.first, g.count);
        if (level + 1 < index.size()) {
          e_.loop(e_.i64(0), e_.i64(n), 1, [&](llvm::Value* at) {
            g.at = e_.uniform(at);
            self(self, level + 1);
          });
          return;
        }
        e_.along_lanes(n, 1, [&](llvm::Value* at, int) {
          g.at = {at, e_.lanes > 1 ? 1 : 0, nullptr};
          store();
        });
      };
      nest(nest, 0);
      e_.lanes = 1;
    }
    e_.end_scope();
  };
  e_.begin_scope();
  if (i->opcode == Opcode::DynamicUpdateSlice) {
    Place from = *e_.place_of(i->operands[0]);
    const Shape& update = i->operand_shape(1);
    std::vector<Lane> starts = e_.dynamic_starts(i, 2, update);
    if (!(from == to) && shape.bytes() > 0) {
      e_.b.CreateMemCpy(e_.pointer(to), llvm::Align(1), e_.pointer(from), llvm::Align(1),
                        static_cast<uint64_t>(shape.bytes()));
    }
    write(i->operands[1], starts);
  } else {
    auto along = static_cast<size_t>(i->integers(AttributeKey::Dimensions)[0]);
    int64_t reached = 0;
    for (const Instruction* operand : i->operands) {
      std::vector<Lane> starts(static_cast<size_t>(shape.rank()), e_.uniform(e_.i64(0)));
      starts[along] = e_.uniform(e_.i64(reached));
      write(operand, starts);
      reached += operand->shape->dimension(static_cast<int64_t>(along));
      written();
    }
  }
  e_.end_scope();
}

}  // namespace lamella::hlo::compiler
