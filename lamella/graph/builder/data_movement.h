// Builder functions that move elements. Source: XLA's operation semantics.
#pragma once
#include "lamella/graph/builder/op.h"
#include "lamella/graph/builder/types.h"
#include "lamella/graph/hlo/shape.h"

namespace lamella::hlo {

// Adds new leading dimensions.
Op Broadcast(Operand operand, Span<int64_t> broadcast_sizes);
// Dimension d of the operand becomes dimension broadcast_dimensions[d] of the result; sizes of 1
// are repeated.
Op BroadcastInDim(Operand operand, Span<int64_t> out_dim_size, Span<int64_t> broadcast_dimensions);
// One size may be -1, and is then inferred.
Op Reshape(Operand operand, Span<int64_t> new_sizes);
// Transpose(operand, dimensions), then Reshape to new_sizes.
Op Reshape(Operand operand, Span<int64_t> dimensions, Span<int64_t> new_sizes);
Op Reshape(const Shape& shape, Operand operand);
// Joins consecutive dimensions.
Op Collapse(Operand operand, Span<int64_t> dimensions);
// Reshapes to sizes given at run time: at most new_size_bounds in dimensions that are dynamic.
Op DynamicReshape(Operand operand, Span<Op> dim_sizes, Span<int64_t> new_size_bounds,
                  const std::vector<bool>& dims_are_dynamic);
// Dimension d of the result is dimension permutation[d] of the operand.
Op Transpose(Operand operand, Span<int64_t> permutation);
Op Rev(Operand operand, Span<int64_t> dimensions);

Op Slice(Operand operand, Span<int64_t> start_indices, Span<int64_t> limit_indices,
         Span<int64_t> strides);
Op SliceInDim(Operand operand, int64_t start_index, int64_t limit_index, int64_t stride,
              int64_t dimno);
// start_indices are scalars. They are clamped so that the slice lies within the operand.
Op DynamicSlice(Operand operand, Span<Op> start_indices, Span<int64_t> slice_sizes);
Op DynamicSlice(Operand operand, Op start_indices, Span<int64_t> slice_sizes);
Op DynamicUpdateSlice(Operand operand, Op update, Span<Op> start_indices);
Op DynamicUpdateSlice(Operand operand, Op update, Op start_indices);
Op ConcatInDim(Within builder, Span<Op> operands, int64_t dimension);
// Negative edge padding removes elements.
Op Pad(Operand operand, Op padding_value, const PaddingConfig& padding_config);
Op PadInDim(Operand operand, Op padding_value, int64_t dimno, int64_t pad_lo, int64_t pad_hi);

Op Gather(Operand input, Op start_indices, const GatherDimensionNumbers& dimension_numbers,
          Span<int64_t> slice_sizes, bool indices_are_sorted = false);

// The run-time size of a dimension, as an S32.
Op GetDimensionSize(Operand operand, int64_t dimension);
Op SetDimensionSize(Operand operand, Op val, int64_t dimension);
Op RemoveDynamicDimension(Operand operand, int64_t dimension);

}  // namespace lamella::hlo
