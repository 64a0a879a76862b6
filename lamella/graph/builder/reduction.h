// Builder functions for reductions, windows, scatters and sorts. Source: XLA's operation semantics.
// Reducers take scalars: (x, y) -> x op y.
#pragma once
#include "lamella/graph/builder/builder.h"

namespace lamella::hlo {

// Combines all elements along the dimensions, from init_value.
Op Reduce(Operand operand, Op init_value, const BuiltComputation& computation,
          Span<int64_t> dimensions_to_reduce);
// Reduces several operands of equal dimensions with one reducer:
// (x1, ..., xn, y1, ..., yn) -> (z1, ..., zn).
Op Reduce(Within builder, Span<Op> operands, Span<Op> init_values,
          const BuiltComputation& computation, Span<int64_t> dimensions_to_reduce);
Op ReduceAll(Operand operand, Op init_value, const BuiltComputation& computation);

Op ReduceWindow(Operand operand, Op init_value, const BuiltComputation& computation,
                Span<int64_t> window_dimensions, Span<int64_t> window_strides, Padding padding);
Op ReduceWindow(Operands operands, Span<Op> init_values, const BuiltComputation& computation,
                Span<int64_t> window_dimensions, Span<int64_t> window_strides, Padding padding);
// Empty dilations mean 1 in each dimension.
Op ReduceWindowWithGeneralPadding(Operand operand, Op init_value,
                                  const BuiltComputation& computation,
                                  Span<int64_t> window_dimensions, Span<int64_t> window_strides,
                                  Span<int64_t> base_dilations, Span<int64_t> window_dilations,
                                  Span<std::pair<int64_t, int64_t>> padding);
Op ReduceWindowWithGeneralPadding(Operands operands, Span<Op> init_values,
                                  const BuiltComputation& computation,
                                  Span<int64_t> window_dimensions, Span<int64_t> window_strides,
                                  Span<int64_t> base_dilations, Span<int64_t> window_dilations,
                                  Span<std::pair<int64_t, int64_t>> padding);

// Scatters each element of `source` to the position in its window that `select` chooses.
Op SelectAndScatter(Operand operand, const BuiltComputation& select,
                    Span<int64_t> window_dimensions, Span<int64_t> window_strides, Padding padding,
                    Op source, Op init_value, const BuiltComputation& scatter);
Op SelectAndScatterWithGeneralPadding(Operand operand, const BuiltComputation& select,
                                      Span<int64_t> window_dimensions, Span<int64_t> window_strides,
                                      Span<std::pair<int64_t, int64_t>> padding, Op source,
                                      Op init_value, const BuiltComputation& scatter);

Op Scatter(Operand input, Op scatter_indices, Op updates,
           const BuiltComputation& update_computation,
           const ScatterDimensionNumbers& dimension_numbers, bool indices_are_sorted = false,
           bool unique_indices = false);
Op Scatter(Operands inputs, Op scatter_indices, Span<Op> updates,
           const BuiltComputation& update_computation,
           const ScatterDimensionNumbers& dimension_numbers, bool indices_are_sorted = false,
           bool unique_indices = false);

// Sorts all operands along a dimension (-1: the last) by one order: comparator(x1, y1, x2, y2, ...)
// returns whether x precedes y. The result is a tuple if there are several operands.
Op Sort(Operands operands, const BuiltComputation& comparator, int64_t dimension = -1,
        bool is_stable = false);
// Returns the k largest (or smallest) elements along the last dimension, and their indices (S32).
Op TopK(Operand operand, int64_t k, bool largest = true);

// The padding of each dimension. kValid: none. kSame: as much as gives ceil(size / stride) windows;
// an odd amount puts the extra element at the end.
std::vector<std::pair<int64_t, int64_t>> MakePadding(Span<int64_t> input_dimensions,
                                                     Span<int64_t> window_dimensions,
                                                     Span<int64_t> window_strides, Padding padding);

}  // namespace lamella::hlo
