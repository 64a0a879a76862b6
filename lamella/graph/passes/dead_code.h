// Pass: dead code elimination.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Removes instructions that the root does not depend on and that have no side effect, and
// computations without callers. Parameters stay. Returns the number of removals.
int64_t remove_dead_code(Module& module);

}  // namespace lamella::hlo
