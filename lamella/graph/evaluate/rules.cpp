// The table from opcodes to rules.
#include "lamella/graph/evaluate/rules.h"

#include <array>

namespace lamella::hlo {

Rule rule_of(Opcode opcode) {
  static constexpr std::array<Rule, kOpcodeCount> kRules = {
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, rule, ...) evaluate_##rule,
#include "lamella/graph/hlo/opcode.def"
  };
  return kRules[static_cast<size_t>(opcode)];
}

}  // namespace lamella::hlo
