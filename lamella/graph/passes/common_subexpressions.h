// Instructions that say the same, done once.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Replaces an instruction by an earlier one with the same opcode, operands, shape and attributes,
// where neither has an effect or draws random numbers; equal constants as well. Returns how
// many it changed.
int64_t join_common_subexpressions(Module& module);

}  // namespace lamella::hlo
