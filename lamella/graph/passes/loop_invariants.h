// Pass: loop-invariant code motion.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Moves instructions of while bodies before the loop if they read only constants and elements of
// the state that the body passes on unchanged. Their results become part of the state. Movements,
// which cost nothing inside the loop, stay. Returns the number of changed loops.
int64_t move_loop_invariants(Module& module);

}  // namespace lamella::hlo
