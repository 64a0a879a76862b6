// Effects: which instructions have side effects outside their computation.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

enum class Effects : uint8_t {
  Pure,  // gives the same for the same operands, and may be done once, earlier, or not at all
  Kept,  // may be left out, but is not joined with others or moved
  Acts,  // acts on the world outside
};
Effects opcode_effects(Opcode opcode);

// True for instructions that must be done, once and in their order, whether or not their result is
// used: custom calls that say so, infeed and outfeed, send and recv, random numbers with a state,
// and whatever calls a computation with one of these.
bool has_side_effect(const Instruction& instruction);

// Calls f(computation) for each computation that the instruction names.
template <class F>
void for_each_called(const Instruction& instruction, F&& f) {
  for (const Attribute& attribute : instruction.attributes) {
    switch (attribute_kind(attribute.key)) {
      case AttributeKind::Computation:
        f(*attribute.computation);
        break;
      case AttributeKind::Computations:
        for (Computation* called : attribute.computations()) f(*called);
        break;
      default:
        break;
    }
  }
}

}  // namespace lamella::hlo
