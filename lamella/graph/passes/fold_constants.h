// Instructions whose operands are constants, done once.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Replaces elementwise instructions, movements and reductions of constants by their results, by the
// evaluator's rules, as long as the results are small and no larger than what they are made of: a
// repeated number stays a broadcast. Returns how many it changed.
int64_t fold_constants(Module& module);

}  // namespace lamella::hlo
