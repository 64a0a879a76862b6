// Opcode: what an HLO instruction does. Derived from lamella/abi/hlo_opcodes.def.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace lamella::hlo {

enum class Opcode : uint8_t {
#define LAMELLA_HLO_OPCODE(name, text, operands) name,
#include "lamella/abi/hlo_opcodes.def"
};

// "dynamic-slice".
std::string_view opcode_name(Opcode opcode);
std::optional<Opcode> opcode_from_name(std::string_view name);
// Number of operands; -1: any.
int opcode_operands(Opcode opcode);

}  // namespace lamella::hlo
