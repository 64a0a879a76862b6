// Reductions of many elements to a scalar.
//
// Note [Blocks]
//   The elements are cut into blocks, whose size depends on the cost of one element alone, and
//   threads share the blocks. Each block leaves its partial result in temporary memory; these are
//   combined in order. So the result has the same bits for any number of threads.
#include <llvm/IR/Intrinsics.h>

#include "lamella/graph/compiler/shared_loop.h"
#include "lamella/graph/compiler/units.h"

namespace lamella::hlo::compiler {

bool UnitPlan::is_in_blocks(const std::vector<int64_t>& sizes, int rows) {
  constexpr int64_t kMinElements = int64_t{1} << 17;
  int64_t elements = 1;
  for (int64_t size : sizes) elements *= size;
  return rows == 0 && elements >= kMinElements;
}

void UnitPlan::emit_blocks(Unit& unit, Index& index) {
  Extent extent(Shape::array(ElementType::F32, unit.sizes));
  const int64_t size = extent.elements();
  const int lanes = lanes_of(unit, size);
  constexpr int kUnroll = 4;
  const int64_t step = int64_t{lanes} * kUnroll;
  int64_t block = kWorkOfTask / std::max(1, unit.weight / 2);
  block = std::max<int64_t>(1, block / step) * step;
  const int64_t count = (size + block - 1) / block;

  struct Sum {
    const Instruction* instruction;
    Opcode opcode;
    ElementType type;
    Place blocks;  // partial results of the blocks
    llvm::Value* identity;
    std::vector<llvm::Value*> parts;
  };
  std::vector<Sum> sums;
  e_.lanes = lanes;
  for (const Member& member : unit.members) {
    if (member.level != Member::Reduction) continue;
    const Instruction* i = member.instruction;
    Opcode opcode = *single_operation(*i->computation(AttributeKey::ToApply));
    ElementType type = Emitter::reduction_type(opcode, i->shape->element_type());
    llvm::Value* identity = e_.reduce_identity(opcode, type);
    Place blocks{Place::Temporary, e_.take_memory(count * element_bytes(type)), nullptr};
    sums.push_back({i, opcode, type, blocks, lanes > 1 ? e_.splat(identity) : identity, {}});
  }

  SharedLoop function;
  auto [begin, end] = function.begin(e_);
  e_.begin_scope();
  for (Sum& sum : sums) {
    for (int u = 0; u < kUnroll; ++u) sum.parts.push_back(e_.variable(sum.identity->getType()));
  }
  auto elements = [&](llvm::Value* at, int part) {
    index[0].at = {at, lanes > 1 ? 1 : 0, nullptr};
    std::vector<std::pair<const Member*, llvm::Value*>> stores;
    size_t next = 0;
    for (const Member& member : unit.members) {
      const Instruction* i = member.instruction;
      if (member.level == Member::Full) {
        llvm::Value* value = e_.calculate(i, index);
        e_.remember(i, 0, index, value);
        if (member.is_stored) stores.emplace_back(&member, value);
      } else if (member.level == Member::Reduction) {
        Sum& sum = sums[next++];
        llvm::Value* x = e_.value(i->operands[0], index);
        if (lanes > 1 && !x->getType()->isVectorTy()) x = e_.splat(x);
        x = e_.to_reduction(sum.opcode, i->shape->element_type(), x);
        if (e_.mask != nullptr) x = e_.b.CreateSelect(e_.mask, x, sum.identity);
        llvm::Value* to = sum.parts[static_cast<size_t>(part)];
        llvm::Value* before = e_.b.CreateLoad(x->getType(), to);
        e_.b.CreateStore(e_.combine(sum.opcode, sum.type, before, x), to);
      }
    }
    for (auto [member, value] : stores) store_all(member->instruction, index, value);
  };
  e_.loop(begin, end, 1, [&](llvm::Value* number) {
    for (Sum& sum : sums) {
      for (llvm::Value* part : sum.parts) e_.b.CreateStore(sum.identity, part);
    }
    llvm::Value* first = e_.b.CreateMul(number, e_.i64(block), "", false, true);
    llvm::Value* behind = e_.b.CreateAdd(first, e_.i64(block), "", false, true);
    auto up_to = [&](int64_t most) {
      return e_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, behind, e_.i64(most));
    };
    // Several vectors at once, then single vectors, then the rest under a mask. Every block but the
    // last is a whole number of steps.
    const int64_t many = size / step * step, whole = size / lanes * lanes;
    e_.loop(first, up_to(many), step, [&](llvm::Value* at) {
      for (int u = 0; u < kUnroll; ++u) {
        elements(e_.b.CreateAdd(at, e_.i64(int64_t{u} * lanes), "", false, true), u);
      }
    });
    auto rest = [&](int64_t from) {
      return e_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, first, e_.i64(from));
    };
    if (whole != many) {
      e_.loop(rest(many), up_to(whole), lanes, [&](llvm::Value* at) { elements(at, 0); });
    }
    if (size != whole) {
      e_.loop(rest(whole), up_to(size), lanes, [&](llvm::Value*) {
        llvm::SmallVector<llvm::Constant*, 64> counts;
        for (int64_t l = 0; l < lanes; ++l) counts.push_back(e_.b.getInt1(whole + l < size));
        e_.mask = llvm::ConstantVector::get(counts);
        elements(e_.i64(whole), 0);
        e_.mask = nullptr;
      });
    }
    for (Sum& sum : sums) {
      llvm::Value* result = nullptr;
      for (llvm::Value* part : sum.parts) {
        llvm::Value* x = e_.b.CreateLoad(sum.identity->getType(), part);
        result = result == nullptr ? x : e_.combine(sum.opcode, sum.type, result, x);
      }
      result = e_.across_lanes(sum.opcode, sum.type, result);
      e_.store_at(sum.blocks, sum.type, e_.uniform(number), result);
    }
  });
  e_.end_scope();
  e_.lanes = 1;
  function.end(e_, count, 1);

  e_.begin_scope();
  for (Sum& sum : sums) {
    const Instruction* i = sum.instruction;
    llvm::Value* reached = e_.variable(e_.register_type(sum.type));
    ElementType own = i->shape->element_type();
    e_.b.CreateStore(e_.to_reduction(sum.opcode, own, e_.value(i->operands[1], {})), reached);
    e_.loop(e_.i64(0), e_.i64(count), 1, [&](llvm::Value* at) {
      llvm::Value* x = e_.load_at(e_.pointer(sum.blocks), sum.type, e_.uniform(at));
      llvm::Value* before = e_.b.CreateLoad(x->getType(), reached);
      e_.b.CreateStore(e_.combine(sum.opcode, sum.type, before, x), reached);
    });
    llvm::Value* result = e_.b.CreateLoad(e_.register_type(sum.type), reached);
    result = e_.narrowed(own, e_.from_reduction(sum.opcode, own, result));
    e_.remember(i, 0, {}, result);
    if (e_.places.count(i) != 0) store_all(i, {}, result);
  }
  for (const Member& member : unit.members) {
    if (member.level != Member::Row) continue;
    llvm::Value* value = e_.calculate(member.instruction, {});
    e_.remember(member.instruction, 0, {}, value);
    if (member.is_stored) store_all(member.instruction, {}, value);
  }
  e_.end_scope();
}

}  // namespace lamella::hlo::compiler
