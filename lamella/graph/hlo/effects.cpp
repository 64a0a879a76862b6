// Finds the instructions with side effects.
#include "lamella/graph/hlo/effects.h"

namespace lamella::hlo {

namespace {

// A called computation is complete, and passes keep what acts, so that the answer is kept with it.
bool acts(const Instruction& instruction) {
  if (opcode_effects(instruction.opcode) == Effects::Acts) return true;
  if (instruction.opcode == Opcode::CustomCall &&
      instruction.flag(AttributeKey::CustomCallHasSideEffect)) {
    return true;
  }
  bool found = false;
  for_each_called(instruction, [&](const Computation& called) {
    int8_t known = called.acts.load(std::memory_order_relaxed);
    if (known < 0) {
      known = 0;
      for (const Instruction* inner : called.instructions) known = known != 0 || acts(*inner);
      called.acts.store(known, std::memory_order_relaxed);
    }
    found = found || known != 0;
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

bool has_side_effect(const Instruction& instruction) { return acts(instruction); }

}  // namespace lamella::hlo
