// Pass: reduces reshapes, transposes, broadcasts and the like to as few as possible.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Merges consecutive movements, removes those that move nothing, turns a transpose of dimensions of
// size 1 into a reshape, moves transposes before reshapes that only add or remove dimensions of
// size 1, and replaces elements of tuples by the operands of the tuple. Returns the number of
// changes.
int64_t simplify_movement(Module& module);

}  // namespace lamella::hlo
