// Instructions that nobody needs, left out.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Takes out instructions that the root does not need and that have no effect, and computations that
// nobody calls. Parameters stay. Returns how many went.
int64_t remove_dead_code(Module& module);

}  // namespace lamella::hlo
