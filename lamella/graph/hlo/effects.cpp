// Finds the instructions with side effects.
#include "lamella/graph/hlo/effects.h"

#include <unordered_set>

namespace lamella::hlo {

namespace {

// `seen` holds the computations visited so far: each is searched once, even with several callers.
bool acts(const Instruction& instruction, std::unordered_set<const Computation*>& seen) {
  if (opcode_effects(instruction.opcode) == Effects::Acts) return true;
  if (instruction.opcode == Opcode::CustomCall &&
      instruction.flag(AttributeKey::CustomCallHasSideEffect)) {
    return true;
  }
  bool found = false;
  for_each_called(instruction, [&](const Computation& called) {
    if (found || !seen.insert(&called).second) return;
    for (const Instruction* inner : called.instructions) found = found || acts(*inner, seen);
  });
  return found;
}

}  // namespace

Effects opcode_effects(Opcode opcode) {
  static constexpr Effects kAll[] = {
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, rule, work, traffic, code, \
                           weight, complex, emitted, same, combines, effects, ...)                \
  Effects::effects,
#include "lamella/graph/hlo/opcode.def"
  };
  return kAll[static_cast<size_t>(opcode)];
}

bool has_side_effect(const Instruction& instruction) {
  std::unordered_set<const Computation*> seen;
  return acts(instruction, seen);
}

}  // namespace lamella::hlo
