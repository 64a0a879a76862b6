// Reshapes, transposes, broadcasts and their like, as few as say the same.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Joins movements that follow each other, leaves out those that move nothing, makes a transpose of
// dimensions of size 1 a reshape, brings transposes before reshapes that only add or remove
// dimensions of size 1, takes elements of tuples where the tuple is made. Returns how many it
// changed.
int64_t simplify_movement(Module& module);

}  // namespace lamella::hlo
