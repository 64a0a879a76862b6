// UnitPlan: emits the loops of a unit as a kernel of a device.
//
// Note [Kernels of units]
//   Without rows a thread calculates one vector of elements. With rows a warp, or a block where a
//   row has more vectors than a few for each lane, walks a row: the threads take its vectors in
//   turns, and combine their partial results by shuffles, and by shared memory between warps. What
//   a thread calculated in one phase it reads in later ones, so short rows stay in registers;
//   threads beyond the end of the row calculate its last vector again and drop it. In long rows
//   later phases calculate values anew.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

#include "lamella/graph/compiler/units.h"

namespace lamella::hlo::compiler {
namespace {

constexpr int kWarp = 32, kBlock = 256, kMaxBlock = 1024;
constexpr int64_t kStepsOfWarp = 4, kMaxSteps = 8;
constexpr int kMaxWeightInRegisters = 2048;

llvm::Value* number_of(Emitter& e, llvm::Intrinsic::ID which) {
  return e.b.CreateIntrinsic(which, {}, {});
}
llvm::Value* number_like(llvm::Value* like, int64_t n) {
  return llvm::ConstantInt::get(like->getType(), static_cast<uint64_t>(n));
}

// Emits code for the threads for which the condition holds; null: all.
template <class F>
void guarded(Emitter& e, llvm::Value* condition, F&& body) {
  if (condition == nullptr) return body();
  llvm::Function* function = e.b.GetInsertBlock()->getParent();
  auto* inside = llvm::BasicBlock::Create(e.context, "inside", function);
  auto* after = llvm::BasicBlock::Create(e.context, "after", function);
  e.b.CreateCondBr(condition, inside, after);
  e.b.SetInsertPoint(inside);
  body();
  e.b.CreateBr(after);
  e.b.SetInsertPoint(after);
}
void leave_unless(Emitter& e, llvm::Value* condition) {
  llvm::Function* function = e.b.GetInsertBlock()->getParent();
  auto* leave = llvm::BasicBlock::Create(e.context, "leave", function);
  auto* stay = llvm::BasicBlock::Create(e.context, "stay", function);
  e.b.CreateCondBr(condition, stay, leave);
  e.b.SetInsertPoint(leave);
  e.b.CreateRetVoid();
  e.b.SetInsertPoint(stay);
}

// Gives groups `begin` to `end` their coordinates of the vector numbered `at`; `lanes` are those of
// the last one.
void take_coordinates(Emitter& e, const Extent& extent, Index& index, size_t begin, size_t end,
                      llvm::Value* at, int lanes) {
  for (size_t g = end; g-- > begin;) {
    const bool last = g + 1 == end && lanes > 1;
    const int64_t size = extent.product(index[g].first, index[g].count) / (last ? lanes : 1);
    llvm::Value* own = at;
    if (g != begin) {
      own = e.b.CreateURem(at, number_like(at, size));
      at = e.b.CreateUDiv(at, number_like(at, size));
    }
    own = e.b.CreateZExtOrTrunc(own, e.b.getInt64Ty());
    if (last) own = e.b.CreateMul(own, e.i64(lanes), "", true, true);
    index[g].at = {own, last ? 1 : 0, nullptr};
  }
}

// A number of fewer than 64 bits as one of 32.
llvm::Value* to_word(Emitter& e, llvm::Value* x) {
  const unsigned bits = x->getType()->getScalarSizeInBits();
  llvm::Value* whole = e.b.CreateBitCast(x, e.b.getIntNTy(bits));
  return bits < 32 ? e.b.CreateZExt(whole, e.b.getInt32Ty()) : whole;
}
llvm::Value* from_word(Emitter& e, llvm::Type* type, llvm::Value* word) {
  const unsigned bits = type->getScalarSizeInBits();
  if (bits < 32) word = e.b.CreateTrunc(word, e.b.getIntNTy(bits));
  return e.b.CreateBitCast(word, type);
}
llvm::Value* of_other_lane(Emitter& e, llvm::Value* x, int distance) {
  auto shuffled = [&](llvm::Value* word) -> llvm::Value* {
    return e.b.CreateIntrinsic(
        llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {},
        {e.b.getInt32(~0U), word, e.b.getInt32(static_cast<uint32_t>(distance)), e.b.getInt32(31)});
  };
  llvm::Value* word = to_word(e, x);
  if (word->getType()->isIntegerTy(32)) return from_word(e, x->getType(), shuffled(word));
  llvm::Value* low = shuffled(e.b.CreateTrunc(word, e.b.getInt32Ty()));
  llvm::Value* high = shuffled(e.b.CreateTrunc(e.b.CreateLShr(word, e.i64(32)), e.b.getInt32Ty()));
  word = e.b.CreateOr(e.b.CreateZExt(low, e.b.getInt64Ty()),
                      e.b.CreateShl(e.b.CreateZExt(high, e.b.getInt64Ty()), e.i64(32)));
  return e.b.CreateBitCast(word, x->getType());
}

}  // namespace

// Combines a value of each thread of a row; all of them get the result.
static llvm::Value* across_threads(Emitter& e, Opcode opcode, ElementType type, llvm::Value* x,
                                   llvm::Value* identity, int threads) {
  auto across_warp = [&] {
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      x = e.combine(opcode, type, x, of_other_lane(e, x, distance));
    }
  };
  across_warp();
  if (threads == kWarp) return x;
  llvm::Type* word = to_word(e, x)->getType();
  auto* array = llvm::ArrayType::get(word, static_cast<uint64_t>(threads / kWarp));
  constexpr unsigned kShared = 3;  // the address space
  auto* memory = new llvm::GlobalVariable(
      e.module, array, false, llvm::GlobalValue::InternalLinkage, llvm::UndefValue::get(array),
      "shared", nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
  llvm::Value* thread = number_of(e, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
  llvm::Value* lane = e.b.CreateAnd(thread, number_like(thread, kWarp - 1));
  guarded(e, e.b.CreateICmpEQ(lane, number_like(lane, 0)), [&] {
    llvm::Value* at = e.b.CreateLShr(thread, number_like(thread, 5));
    e.b.CreateStore(to_word(e, x), e.b.CreateGEP(word, memory, at));
  });
  number_of(e, llvm::Intrinsic::nvvm_barrier0);
  llvm::Value* here = e.b.CreateICmpULT(lane, number_like(lane, threads / kWarp));
  llvm::Value* at = e.b.CreateSelect(here, lane, number_like(lane, 0));
  llvm::Value* part = e.b.CreateLoad(word, e.b.CreateGEP(word, memory, at));
  x = e.b.CreateSelect(here, from_word(e, x->getType(), part), identity);
  across_warp();
  return x;
}

UnitPlan::Launch UnitPlan::emit_launch(Unit& unit) {
  Extent extent(Shape::array(ElementType::F32, unit.sizes));
  Index index = groups_of(unit);
  const int64_t last = index.empty() ? 1 : extent.product(index.back().first, index.back().count);
  e_.forget_cuts();
  // Wider elements have fewer lanes, so that a vector has up to 16 bytes.
  int lanes = lanes_of(unit, last);
  while (last % lanes != 0) lanes /= 2;
  llvm::Value* thread = number_of(e_, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
  llvm::Value* block = number_of(e_, llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
  const bool is_wide = extent.elements() > INT32_MAX;
  auto numbered = [&](llvm::Value* first, int64_t each, llvm::Value* rest) {
    if (is_wide) {
      first = e_.b.CreateZExt(first, e_.b.getInt64Ty());
      rest = e_.b.CreateZExt(rest, e_.b.getInt64Ty());
    }
    return e_.b.CreateAdd(e_.b.CreateMul(first, number_like(first, each)), rest);
  };
  e_.begin_scope();
  if (unit.rows < 0) {
    const int64_t vectors = extent.elements() / lanes;
    llvm::Value* at = numbered(block, kBlock, thread);
    if (vectors % kBlock != 0) leave_unless(e_, e_.b.CreateICmpULT(at, number_like(at, vectors)));
    take_coordinates(e_, extent, index, 0, index.size(), at, lanes);
    e_.lanes = lanes;
    emit_elements(unit, index);
    e_.lanes = 1;
    e_.end_scope();
    return {static_cast<uint32_t>((vectors + kBlock - 1) / kBlock), kBlock};
  }

  size_t outer = 0;
  while (outer < index.size() && index[outer].first < unit.rows) ++outer;
  const int64_t rows = extent.product(0, unit.rows);
  const int64_t length = extent.elements() / rows;
  while (lanes > 1 && length / lanes < kWarp) lanes /= 2;
  const int64_t vectors = length / lanes;
  int64_t threads = kWarp;
  if (vectors > kStepsOfWarp * kWarp) {
    const int64_t wanted = (vectors + kStepsOfWarp - 1) / kStepsOfWarp;
    threads = std::min<int64_t>(kMaxBlock, (wanted + kWarp - 1) / kWarp * kWarp);
  }
  const int64_t steps = (vectors + threads - 1) / threads;
  const bool straight = steps <= kMaxSteps && steps * unit.weight <= kMaxWeightInRegisters;
  const int64_t at_once = threads > kWarp ? 1 : std::min<int64_t>(kBlock / kWarp, rows);
  llvm::Value *row = block, *own = thread;
  if (at_once > 1) {
    row = numbered(block, at_once, e_.b.CreateLShr(thread, number_like(thread, 5)));
    own = e_.b.CreateAnd(thread, number_like(thread, kWarp - 1));
    if (rows % at_once != 0) leave_unless(e_, e_.b.CreateICmpULT(row, number_like(row, rows)));
  }
  take_coordinates(e_, extent, index, 0, outer, row, 1);
  const Index of_row(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(outer));

  // One step of a row: the index of its elements, and whether there are any; null: in all threads.
  struct Step {
    Index index;
    llvm::Value* inside;
  };
  std::vector<Step> all;
  for (int64_t s = 0; straight && s < steps; ++s) {
    llvm::Value* at = e_.b.CreateAdd(own, number_like(own, s * threads));
    llvm::Value* inside = nullptr;
    if ((s + 1) * threads > vectors) {
      inside = e_.b.CreateICmpULT(at, number_like(at, vectors));
      at = e_.b.CreateSelect(inside, at, number_like(at, vectors - 1));
    }
    take_coordinates(e_, extent, index, outer, index.size(), at, lanes);
    all.push_back({index, inside});
  }
  llvm::Value* leads = e_.b.CreateICmpEQ(own, number_like(own, 0));
  int phases = 0;
  for (const Member& member : unit.members) phases = std::max(phases, member.phase + 1);
  for (int phase = 0; phase < phases; ++phase) {
    struct Sum {
      const Instruction* i;
      Opcode opcode;
      ElementType type;
      llvm::Value *identity, *reached;
      bool is_stored;
    };
    std::vector<Sum> sums;
    e_.lanes = lanes;
    for (const Member& member : unit.members) {
      if (member.phase != phase || member.level != Member::Reduction) continue;
      const Instruction* i = member.instruction;
      const Opcode opcode = *single_operation(*i->computation(AttributeKey::ToApply));
      const ElementType type = Emitter::reduction_type(opcode, i->shape->element_type());
      llvm::Value* identity = e_.reduce_identity(opcode, type);
      llvm::Value* start = lanes > 1 ? e_.splat(identity) : identity;
      llvm::Value* reached = e_.variable(start->getType());
      e_.b.CreateStore(start, reached);
      sums.push_back({i, opcode, type, identity, reached, member.is_stored});
    }
    bool walks = !sums.empty();
    for (const Member& member : unit.members) {
      walks = walks || (member.phase == phase && member.level == Member::Full);
    }
    auto elements = [&](const Step& step) {
      size_t next = 0;
      for (const Member& member : unit.members) {
        if (member.phase != phase || member.level == Member::Row) continue;
        const Instruction* i = member.instruction;
        if (member.level == Member::Full) {
          llvm::Value* value = e_.calculate(i, step.index);
          e_.remember(i, 0, step.index, value);
          if (member.is_stored) {
            guarded(e_, step.inside, [&] { store_all(i, step.index, value); });
          }
          continue;
        }
        const Sum& sum = sums[next++];
        llvm::Value* x = e_.value(i->operands[0], step.index);
        if (lanes > 1 && !x->getType()->isVectorTy()) x = e_.splat(x);
        x = e_.to_reduction(sum.opcode, i->shape->element_type(), x);
        if (step.inside != nullptr) {
          llvm::Value* nothing = lanes > 1 ? e_.splat(sum.identity) : sum.identity;
          x = e_.b.CreateSelect(step.inside, x, nothing);
        }
        llvm::Value* before = e_.b.CreateLoad(x->getType(), sum.reached);
        e_.b.CreateStore(e_.combine(sum.opcode, sum.type, before, x), sum.reached);
      }
    };
    for (const Step& step : all) elements(step);
    if (walks && !straight) {
      llvm::Value* first = e_.b.CreateZExt(own, e_.b.getInt64Ty());
      e_.loop(first, e_.i64(vectors), threads, [&](llvm::Value* at) {
        take_coordinates(e_, extent, index, outer, index.size(), at, lanes);
        elements({index, nullptr});
      });
    }
    e_.lanes = 1;
    for (const Sum& sum : sums) {
      llvm::Value* x = e_.b.CreateLoad(
          llvm::cast<llvm::AllocaInst>(sum.reached)->getAllocatedType(), sum.reached);
      x = e_.across_lanes(sum.opcode, sum.type, x);
      x = across_threads(e_, sum.opcode, sum.type, x, sum.identity, static_cast<int>(threads));
      const ElementType type = sum.i->shape->element_type();
      llvm::Value* start = e_.to_reduction(sum.opcode, type, e_.value(sum.i->operands[1], {}));
      x = e_.combine(sum.opcode, sum.type, start, x);
      x = e_.narrowed(type, e_.from_reduction(sum.opcode, type, x));
      e_.remember(sum.i, 0, of_row, x);
      if (sum.is_stored) guarded(e_, leads, [&] { store_all(sum.i, of_row, x); });
    }
    for (const Member& member : unit.members) {
      if (member.phase != phase || member.level != Member::Row) continue;
      llvm::Value* value = e_.calculate(member.instruction, of_row);
      e_.remember(member.instruction, 0, of_row, value);
      if (member.is_stored) {
        guarded(e_, leads, [&] { store_all(member.instruction, of_row, value); });
      }
    }
  }
  e_.end_scope();
  return {static_cast<uint32_t>((rows + at_once - 1) / at_once),
          static_cast<uint32_t>(at_once * threads)};
}

}  // namespace lamella::hlo::compiler
