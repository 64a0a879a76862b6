// Functions of the builder with a computation for pairs of elements. Source: XLA's operation
// semantics. Computations combine scalars: (x, y) -> x op y.
#pragma once
#include "lamella/graph/builder/builder.h"

namespace lamella::hlo {

// Combines all elements along the dimensions, from init_value.
Op Reduce(Operand operand, Op init_value, const BuiltComputation& computation,
          Span<int64_t> dimensions_to_reduce);
// Several operands of the same dimensions at once: (x1, ..., xn, y1, ..., yn) -> (z1, ..., zn).
Op Reduce(Within builder, Span<Op> operands, Span<Op> init_values,
          const BuiltComputation& computation, Span<int64_t> dimensions_to_reduce);
Op ReduceAll(Operand operand, Op init_value, const BuiltComputation& computation);

Op ReduceWindow(Operand operand, Op init_value, const BuiltComputation& computation,
                Span<int64_t> window_dimensions, Span<int64_t> window_strides, Padding padding);
Op ReduceWindow(Operands operands, Span<Op> init_values, const BuiltComputation& computation,
                Span<int64_t> window_dimensions, Span<int64_t> window_strides, Padding padding);
// Empty dilations are ones.
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

// Scatters each element of `source` to the place that `select` picks in its window.
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

// Sorts along a dimension (-1: the last), all operands by one order: comparator(x1, y1, x2, y2,
// ...) says whether x comes before y. The result is a tuple where there are several operands.
Op Sort(Operands operands, const BuiltComputation& comparator, int64_t dimension = -1,
        bool is_stable = false);
// The k largest (or smallest) along the last dimension, and their indices (S32).
Op TopK(Operand operand, int64_t k, bool largest = true);

// Padding of each dimension for a window to fit, under XLA's two rules: kValid none, kSame as much
// as gives ceil(size / stride) windows, the odd one behind.
std::vector<std::pair<int64_t, int64_t>> MakePadding(Span<int64_t> input_dimensions,
                                                     Span<int64_t> window_dimensions,
                                                     Span<int64_t> window_strides, Padding padding);

}  // namespace lamella::hlo
