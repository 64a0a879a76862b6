// Instructions that cannot be left out.
#include "lamella/graph/hlo/effects.h"

namespace lamella::hlo {

bool has_side_effect(const Instruction& instruction) {
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
    for (const Instruction* inner : called.instructions) found = found || has_side_effect(*inner);
  });
  return found;
}

}  // namespace lamella::hlo
