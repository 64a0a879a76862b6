// The greatest elements of a dimension (XLA's client/lib/sorting.h and approx_topk.h).
#pragma once
#include "lamella/graph/builder/builder.h"

namespace lamella::hlo {

// TopK of builder/reduction.h with indices of another type.
Op TopK(Operand input, int64_t k, PrimitiveType index_type);
// The same values and indices as TopK; partitions are a hint to other compilers.
Op TopKWithPartitions(Operand input, int64_t k, int64_t num_partitions = 1,
                      PrimitiveType index_type = ElementType::S32);
// The first top_k elements along a dimension in the order of comparator(x1, y1, x2, y2, ...), as a
// tuple if there are several operands. They are exact, whatever recall is asked for.
Op ApproxTopK(Within builder, Span<Op> operands, Span<Op> init_values, int64_t top_k,
              int64_t reduction_dim, const BuiltComputation& comparator, float recall_target = 0.9f,
              bool aggregate_to_topk = true, int64_t reduction_input_size_override = -1);
Op ApproxTopKFallback(Within builder, Span<Op> operands, Span<Op> init_values, int64_t top_k,
                      int64_t reduction_dim, const BuiltComputation& comparator,
                      float recall_target = 0.9f, bool aggregate_to_topk = true,
                      int64_t reduction_input_size_override = -1);

}  // namespace lamella::hlo
