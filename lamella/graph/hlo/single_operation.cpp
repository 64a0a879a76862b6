// Recognizes reducers that consist of one operation.
#include "lamella/graph/hlo/single_operation.h"

namespace lamella::hlo {

std::optional<Opcode> single_operation(const Computation& computation) {
  const Instruction& root = *computation.root;
  if (computation.parameters.size() != 2 || root.operands.size() != 2) return std::nullopt;
  for (const Instruction* operand : root.operands) {
    if (operand->opcode != Opcode::Parameter) return std::nullopt;
  }
  if (root.operands[0] == root.operands[1]) return std::nullopt;
  switch (root.opcode) {
    case Opcode::Add:
    case Opcode::Multiply:
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
    case Opcode::Maximum:
    case Opcode::Minimum:
      return root.opcode;
    default:
      return std::nullopt;
  }
}

}  // namespace lamella::hlo
