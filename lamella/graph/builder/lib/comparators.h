// Comparators for Sort (XLA's client/lib/comparators.h).
#pragma once
#include "lamella/graph/builder/builder.h"

namespace lamella::hlo {

// A comparison of two ops, such as LtTotalOrder.
using Comparator = Op (*)(Operand, Op, Span<int64_t>);

// (x1, y1, x2, y2, ...) -> x1 < y1 in total order. `operand_types` are the types of Sort's
// operands, of which only the first is compared.
BuiltComputation CreateScalarLtComputation(const std::vector<PrimitiveType>& operand_types,
                                           Builder* builder);
BuiltComputation CreateScalarGtComputation(const std::vector<PrimitiveType>& operand_types,
                                           Builder* builder);
// Compares the operands that have a comparator, lexicographically.
BuiltComputation CreateScalarComparisonComputation(
    const std::string& name, const std::vector<PrimitiveType>& operand_types,
    const std::vector<std::optional<Comparator>>& generators, Builder* builder);

}  // namespace lamella::hlo
