// Dimensions of products.
#include "lamella/graph/passes/contractions.h"

#include <algorithm>

#include "lamella/graph/passes/rewriter.h"

namespace lamella::hlo {
namespace {

using Numbers = std::vector<int64_t>;

constexpr AttributeKey kBatch[] = {AttributeKey::LhsBatchDims, AttributeKey::RhsBatchDims};
constexpr AttributeKey kSummed[] = {AttributeKey::LhsContractingDims,
                                    AttributeKey::RhsContractingDims};

// Free dimensions come out in their order, which a transpose may only keep.
bool keeps_free_order(const Instruction& dot, size_t side) {
  auto order = dot.operands[side]->integers(AttributeKey::Dimensions);
  auto batch = dot.integers(kBatch[side]), summed = dot.integers(kSummed[side]);
  int64_t last = -1;
  for (int64_t d = 0; d < static_cast<int64_t>(order.size()); ++d) {
    if (std::ranges::find(batch, d) != batch.end() ||
        std::ranges::find(summed, d) != summed.end()) {
      continue;
    }
    int64_t from = order[static_cast<size_t>(d)];
    if (from < last) return false;
    last = from;
  }
  return true;
}

Instruction* without_transpose(Rewriter& to, Instruction* dot, size_t side) {
  Instruction* transposed = dot->operands[side];
  auto order = transposed->integers(AttributeKey::Dimensions);
  std::vector<Attribute> attributes;
  for (const Attribute& one : dot->attributes) {
    if (one.key != kBatch[side] && one.key != kSummed[side]) {
      attributes.push_back(one);
      continue;
    }
    Numbers moved;
    for (int64_t d : one.integers()) moved.push_back(order[static_cast<size_t>(d)]);
    attributes.push_back(to.integers(one.key, moved));
  }
  std::vector<Instruction*> operands(dot->operands.begin(), dot->operands.end());
  operands[side] = transposed->operands[0];
  return to.add(Opcode::Dot, *dot->shape, operands, attributes);
}

}  // namespace

int64_t canonicalize_products(Module& module) {
  int64_t changed = 0;
  for (Computation* computation : module.computations) {
    Rewriter rewriter(module, *computation);
    changed += rewriter.rewrite([&](Instruction* i) -> Instruction* {
      if (i->opcode != Opcode::Dot) return nullptr;
      Instruction* made = i;
      for (size_t side = 0; side < 2; ++side) {
        if (made->operands[side]->opcode == Opcode::Transpose && keeps_free_order(*made, side)) {
          made = without_transpose(rewriter, made, side);
        }
      }
      return made;
    });
  }
  return changed;
}

}  // namespace lamella::hlo
