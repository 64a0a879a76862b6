// Pass: constant folding.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Replaces elementwise instructions, movements and reductions of constants by their results, which
// the evaluator's rules calculate, if the results are small and no larger than the operands: so a
// repeated number stays a broadcast. A constant tuple becomes a tuple of constants. Returns the
// number of replacements.
int64_t fold_constants(Module& module);

}  // namespace lamella::hlo
