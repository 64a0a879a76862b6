// Effects: which instructions have side effects outside their computation.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// True for instructions that must run exactly once and in order, even if their result is unused:
// custom calls marked so, infeed and outfeed, send and recv, random numbers with a state, and
// instructions that call a computation with one of these.
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
