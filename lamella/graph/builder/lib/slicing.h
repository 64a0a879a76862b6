// Slices of the last dimensions, and lookups by index (XLA's client/lib/slicing.h).
#pragma once
#include "lamella/graph/builder/builder.h"

namespace lamella::hlo {

// Slices the last start.size() dimensions.
Op SliceInMinorDims(Operand x, Span<int64_t> start, Span<int64_t> end);
// Replaces the part of x at `start` by `update`. UpdateSlice takes a start for each dimension,
// UpdateSliceInMinorDims only for the last ones.
Op UpdateSlice(Operand x, Op update, Span<int64_t> start);
Op UpdateSliceInMinorDims(Operand x, Op update, Span<int64_t> start);
Op DynamicSliceInMinorDims(Operand x, Span<Op> starts, Span<int64_t> sizes);
Op DynamicUpdateSliceInMinorDims(Operand x, Op update, Span<Op> starts);
// Along `dim`, element index[...] of the elements that have the index's other coordinates. `sparse`
// is a hint to other compilers.
Op TorchGather(Operand input, Op index, int64_t dim, bool sparse = true);
// Row index[i] of dimension `dim`, for each index of a vector.
Op TorchIndexSelect(Operand input, Op index, int64_t dim, int64_t batch_dims = 0);

}  // namespace lamella::hlo
