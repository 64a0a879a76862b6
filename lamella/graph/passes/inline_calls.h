// Calls of computations, replaced by what they call.
#pragma once
#include <functional>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Puts the instructions of called computations into the place of calls and fusions, where `wanted`
// says so of the computation, and until there are `most` instructions. The called computations
// stay, and every computation that is called stands before its callers, as it must at the
// beginning. Returns how many it changed.
int64_t inline_calls(Module& module, int64_t most,
                     const std::function<bool(const Computation&)>& wanted);

}  // namespace lamella::hlo
