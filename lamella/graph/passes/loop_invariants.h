// What each step of a loop would do again, done once.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Moves instructions of while bodies in front of the loop where they read only constants and
// elements of the state that the body passes on as they are. What they give joins the state.
// Movements, which cost nothing inside, stay. Returns how many loops changed.
int64_t move_loop_invariants(Module& module);

}  // namespace lamella::hlo
