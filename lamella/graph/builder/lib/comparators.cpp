// Comparators for Sort.
#include "lamella/graph/builder/lib/comparators.h"

#include "lamella/graph/builder/functions.h"

namespace lamella::hlo {

BuiltComputation CreateScalarComparisonComputation(
    const std::string& name, const std::vector<PrimitiveType>& operand_types,
    const std::vector<std::optional<Comparator>>& generators, Builder* builder) {
  LAMELLA_CHECK(builder != nullptr, name, ": expected a builder, got null");
  LAMELLA_CHECK(!operand_types.empty() && generators.size() == operand_types.size(), name,
                ": expected a type and a comparator for each operand, got ", operand_types.size(),
                " and ", generators.size());
  std::unique_ptr<Builder> b = builder->CreateSubBuilder(name);
  Op less, equal;
  for (size_t n = 0; n < operand_types.size(); ++n) {
    Shape scalar = Shape::scalar(operand_types[n]);
    auto number = static_cast<int64_t>(2 * n);
    Op x = Parameter(b.get(), number, scalar, str("p.", n, ".lhs"));
    Op y = Parameter(b.get(), number + 1, scalar, str("p.", n, ".rhs"));
    if (!generators[n]) continue;
    Op before = (*generators[n])(x, y, {});
    less = equal.valid() ? Or(less, And(equal, before)) : before;
    Op same = EqTotalOrder(x, y);
    equal = equal.valid() ? And(equal, same) : same;
  }
  LAMELLA_CHECK(less.valid() || !b->first_error().ok(), name,
                ": expected a comparator for at least one operand, got none");
  return b->Build(less).value();
}

namespace {

BuiltComputation by_first(const char* name, const std::vector<PrimitiveType>& types,
                          Comparator compare, Builder* builder) {
  std::vector<std::optional<Comparator>> generators(types.size());
  if (!generators.empty()) generators[0] = compare;
  return CreateScalarComparisonComputation(name, types, generators, builder);
}

}  // namespace

BuiltComputation CreateScalarLtComputation(const std::vector<PrimitiveType>& operand_types,
                                           Builder* builder) {
  return by_first("compare-less-than", operand_types, LtTotalOrder, builder);
}
BuiltComputation CreateScalarGtComputation(const std::vector<PrimitiveType>& operand_types,
                                           Builder* builder) {
  return by_first("compare-greater-than", operand_types, GtTotalOrder, builder);
}

}  // namespace lamella::hlo
