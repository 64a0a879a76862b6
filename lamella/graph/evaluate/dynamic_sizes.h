// Runs rules on arrays of dynamic size. See Note [Dynamic sizes] in runtime/sized_value.h.
#pragma once
#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {

// The result of a rule for operands some of which may have sizes below their bounds.
//
// Note [Rules and sizes]
//   Elementwise operations, broadcasts, transposes and slices run on the whole arrays, and their
//   results' sizes follow from the operands'. All others run on the valid elements alone, as an
//   instruction whose operands have exactly these sizes: so a reduction ignores the elements beyond
//   them, and a concatenation joins valid elements. Sizes follow XLA's rules; what XLA leaves
//   undefined is refused.
Value run_with_sizes(Step& step, Rule rule);

}  // namespace lamella::hlo
