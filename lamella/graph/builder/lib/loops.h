// Loops with a state of several values (XLA's client/lib/loops.h).
#pragma once
#include <functional>

#include "lamella/graph/builder/builder.h"

namespace lamella::hlo {

using WhileLoopHelperConditionFunction =
    std::function<StatusOr<Op>(Span<Op> values, Builder* builder)>;
using WhileLoopHelperBodyFunction =
    std::function<StatusOr<std::vector<Op>>(Span<Op> values, Builder* builder)>;
using ForEachIndexBodyFunction =
    std::function<StatusOr<std::vector<Op>>(Op index, Span<Op> values, Builder* builder)>;

// Runs the body while the condition is true, and returns the final values. Both callbacks are
// called once, each with the builder of its own computation.
StatusOr<std::vector<Op>> WhileLoopHelper(const WhileLoopHelperConditionFunction& condition,
                                          const WhileLoopHelperBodyFunction& body,
                                          Span<Op> initial_values, std::string_view name,
                                          Builder* builder);
// A loop whose index has this type and runs from 0 to num_iterations - 1.
StatusOr<std::vector<Op>> ForEachIndex(int64_t num_iterations, PrimitiveType num_iterations_type,
                                       const ForEachIndexBodyFunction& body,
                                       Span<Op> initial_values, std::string_view name,
                                       Builder* builder);

}  // namespace lamella::hlo
