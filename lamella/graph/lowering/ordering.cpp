// Lowering rules of sorting.
#include "lamella/graph/builder/lib/comparators.h"
#include "lamella/graph/lowering/lowering.h"

namespace lamella::hlo::lowering {
namespace {

// Sorts values with their indices. The sort is stable.
Ops sort(Call& c) {
  Op x = c.op("self");
  ElementType type = c.type_of(x);
  int64_t rank = c.rank_of(x);
  if (rank == 0 || c.result_count() != 2 || (!is_floating(type) && !is_integral(type))) return {};
  // Floats stay calls: total order puts -NaN first and -0 before 0, unlike eager sorting.
  if (is_floating(type)) return {};
  int64_t dim = c.dimension("dim", rank, -1);
  Op places = c.iota(ElementType::S64, c.sizes(), dim);
  std::vector<PrimitiveType> types{type, ElementType::S64};
  BuiltComputation comparator = c.flag("descending")
                                    ? CreateScalarGtComputation(types, c.builder())
                                    : CreateScalarLtComputation(types, c.builder());
  Op sorted = Sort(Ops{x, places}, comparator, dim, true);
  return {GetTupleElement(sorted, 0), GetTupleElement(sorted, 1)};
}

const Rule kOrdering[] = {
    {"aten::sort", sort},
};

}  // namespace

std::span<const Rule> ordering_rules() { return kOrdering; }

}  // namespace lamella::hlo::lowering
