// The greatest elements of a dimension.
#include "lamella/graph/builder/lib/sorting.h"

#include "lamella/graph/builder/emission.h"
#include "lamella/graph/builder/functions.h"

namespace lamella::hlo {

Op TopK(Operand input, int64_t k, PrimitiveType index_type) {
  return emit("TopK", input, [&](Emission& e) {
    LAMELLA_EXPECT(is_integral(index_type), "'index_type' to be an integer's, got ",
                   element_name(index_type));
    Op both = TopK(e.at(input), k, true);
    if (index_type == ElementType::S32) return both;
    Op places = ConvertElementType(e.at(GetTupleElement(e.at(both), 1)), index_type);
    return Tuple(e.within(), {GetTupleElement(e.at(both), 0), places});
  });
}
Op TopKWithPartitions(Operand input, int64_t k, int64_t, PrimitiveType index_type) {
  return emit("TopKWithPartitions", input,
              [&](Emission& e) { return TopK(e.at(input), k, index_type); });
}
Op ApproxTopK(Within builder, Span<Op> operands, Span<Op> init_values, int64_t top_k,
              int64_t reduction_dim, const BuiltComputation& comparator, float recall_target, bool,
              int64_t) {
  return emit("ApproxTopK", builder, [&](Emission& e) {
    LAMELLA_EXPECT(!operands.empty() && operands.size() == init_values.size(),
                   "a value of 'init_values' for each operand, got ", operands.size(),
                   " operands and ", init_values.size(), " values");
    LAMELLA_EXPECT(recall_target > 0 && recall_target <= 1,
                   "'recall_target' above 0 and at most 1, got ", recall_target);
    const Shape& shape = e.array(operands[0], "operands");
    require_dimension(shape, reduction_dim, "reduction_dim");
    int64_t size = shape.dimension(reduction_dim);
    LAMELLA_EXPECT(top_k >= 0 && top_k <= size, "'top_k' of at most ", size, ", got ", top_k);
    Op sorted = Sort(Operands(operands, e.where()), comparator, reduction_dim, true);
    auto first = [&](Op op) { return SliceInDim(e.at(op), 0, top_k, 1, reduction_dim); };
    if (operands.size() == 1) return first(sorted);
    std::vector<Op> parts;
    for (size_t n = 0; n < operands.size(); ++n) {
      parts.push_back(first(GetTupleElement(e.at(sorted), static_cast<int64_t>(n))));
    }
    return Tuple(e.within(), parts);
  });
}
Op ApproxTopKFallback(Within builder, Span<Op> operands, Span<Op> init_values, int64_t top_k,
                      int64_t reduction_dim, const BuiltComputation& comparator,
                      float recall_target, bool aggregate_to_topk,
                      int64_t reduction_input_size_override) {
  return ApproxTopK(builder, operands, init_values, top_k, reduction_dim, comparator, recall_target,
                    aggregate_to_topk, reduction_input_size_override);
}

}  // namespace lamella::hlo
