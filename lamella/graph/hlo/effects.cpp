// Finds the instructions with side effects.
#include "lamella/graph/hlo/effects.h"

#include <unordered_set>

namespace lamella::hlo {

namespace {

// `seen` holds the computations visited so far: each is searched once, even with several callers.
bool acts(const Instruction& instruction, std::unordered_set<const Computation*>& seen) {
  switch (instruction.opcode) {
    case Opcode::Infeed:
    case Opcode::Outfeed:
    case Opcode::Send:
    case Opcode::SendDone:
    case Opcode::Recv:
    case Opcode::RecvDone:
    case Opcode::Rng:
    case Opcode::RngGetAndUpdateState:
      return true;
    case Opcode::CustomCall:
      if (instruction.flag(AttributeKey::CustomCallHasSideEffect)) return true;
      break;
    default:
      break;
  }
  bool found = false;
  for_each_called(instruction, [&](const Computation& called) {
    if (found || !seen.insert(&called).second) return;
    for (const Instruction* inner : called.instructions) found = found || acts(*inner, seen);
  });
  return found;
}

}  // namespace

bool has_side_effect(const Instruction& instruction) {
  std::unordered_set<const Computation*> seen;
  return acts(instruction, seen);
}

}  // namespace lamella::hlo
