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

// The values after the body ran as long as the condition gives true. Both are called once, with
// the builder of a computation of their own.
StatusOr<std::vector<Op>> WhileLoopHelper(const WhileLoopHelperConditionFunction& condition,
                                          const WhileLoopHelperBodyFunction& body,
                                          Span<Op> initial_values, std::string_view name,
                                          Builder* builder);
// With an index of this type that runs from 0 below num_iterations.
StatusOr<std::vector<Op>> ForEachIndex(int64_t num_iterations, PrimitiveType num_iterations_type,
                                       const ForEachIndexBodyFunction& body,
                                       Span<Op> initial_values, std::string_view name,
                                       Builder* builder);

}  // namespace lamella::hlo
