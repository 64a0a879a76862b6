// Pass: replaces calls of computations by the instructions of the callee.
#pragma once
#include <functional>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Replaces calls and fusions of computations that `wanted` accepts by the callee's instructions,
// while the module has at most `most` instructions. The called computations stay. Every computation
// must come after those that it calls, and still does after the pass. Returns the number of inlined
// calls.
int64_t inline_calls(Module& module, int64_t most,
                     const std::function<bool(const Computation&)>& wanted);

}  // namespace lamella::hlo
