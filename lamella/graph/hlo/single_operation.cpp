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
  enum Combines : bool { No, Yes };
  static constexpr Combines kCombines[] = {
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, rule, work, traffic, code, \
                           weight, complex, emitted, same, combines, ...)                         \
  combines,
#include "lamella/graph/hlo/opcode.def"
  };
  if (kCombines[static_cast<size_t>(root.opcode)] == No) return std::nullopt;
  return root.opcode;
}

}  // namespace lamella::hlo
