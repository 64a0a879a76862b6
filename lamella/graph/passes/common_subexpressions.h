// Pass: common subexpression elimination.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Replaces an instruction by an earlier one with the same opcode, operands, shape and attributes,
// unless it has a side effect or draws random numbers. Equal small constants are joined, too.
// Returns the number of replacements.
int64_t join_common_subexpressions(Module& module);

}  // namespace lamella::hlo
