// Removes dead code.
#include "lamella/graph/passes/dead_code.h"

#include <algorithm>
#include <unordered_set>

#include "lamella/graph/hlo/effects.h"

namespace lamella::hlo {
namespace {

int64_t clean(Computation& computation) {
  std::vector<Instruction*>& all = computation.instructions;
  std::vector<bool> needed(all.size(), false);
  auto at = [](const Instruction* i) { return static_cast<size_t>(i->index); };
  needed[at(computation.root)] = true;
  for (size_t n = all.size(); n-- > 0;) {
    const Instruction& i = *all[n];
    if (!needed[n] && i.opcode != Opcode::Parameter && !has_side_effect(i)) continue;
    needed[n] = true;
    for (const Instruction* operand : i.operands) needed[at(operand)] = true;
    if (const Attribute* before = i.find(AttributeKey::ControlPredecessors)) {
      for (const Instruction* one : before->instructions()) needed[at(one)] = true;
    }
  }
  std::vector<Instruction*> kept;
  for (size_t n = 0; n < all.size(); ++n) {
    if (needed[n]) kept.push_back(all[n]);
  }
  auto removed = static_cast<int64_t>(all.size() - kept.size());
  all = std::move(kept);
  for (size_t n = 0; n < all.size(); ++n) all[n]->index = static_cast<int64_t>(n);
  return removed;
}

}  // namespace

int64_t remove_dead_code(Module& module) {
  int64_t removed = 0;
  for (Computation* computation : module.computations) removed += clean(*computation);
  std::unordered_set<const Computation*> called{module.entry};
  for (size_t c = module.computations.size(); c-- > 0;) {
    const Computation* computation = module.computations[c];
    if (called.count(computation) == 0) continue;
    for (const Instruction* i : computation->instructions) {
      for_each_called(*i, [&](const Computation& one) { called.insert(&one); });
    }
  }
  auto is_dead = [&](const Computation* one) { return called.count(one) == 0; };
  return removed + static_cast<int64_t>(std::erase_if(module.computations, is_dead));
}

}  // namespace lamella::hlo
