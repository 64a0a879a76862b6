// Opcode: what an HLO instruction does. Derived from lamella/graph/hlo/opcode.def.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lamella::hlo {

enum class Opcode : uint8_t {
#define LAMELLA_HLO_OPCODE(name, text, operands, ...) name,
#include "lamella/graph/hlo/opcode.def"
};

inline constexpr size_t kOpcodeCount = 0
#define LAMELLA_HLO_OPCODE(...) +1
#include "lamella/graph/hlo/opcode.def"
    ;

// The name in HLO texts, such as "dynamic-slice".
std::string_view opcode_name(Opcode opcode);
std::optional<Opcode> opcode_from_name(std::string_view name);
// The number of operands, or -1 if it varies.
int opcode_operands(Opcode opcode);

// What an opcode is to a reader of a graph.
enum class Family : uint8_t {
  Parameter,
  Constant,
  Elementwise,
  Movement,     // broadcast, slice, gather, ...: elements in other places
  Reduction,    // reduce, sort, ...
  Contraction,  // dot, convolution, fft, linear algebra
  Control,      // while, call, ...
  Fusion,
  CustomCall,
  Collective,
  Tuple,
};
Family opcode_family(Opcode opcode);
// Elements of one operand, in other places: of a scalar the scalar itself.
inline bool moves_one_operand(Opcode opcode) {
  return opcode_family(opcode) == Family::Movement && opcode_operands(opcode) == 1;
}

}  // namespace lamella::hlo
