// The table of the builder's functions, under Python's names.
#include "python/src_hlo/builder.h"

namespace lamella::python {
namespace {

using namespace lamella::hlo;

template <Op (*function)(Operand)>
constexpr Row unary(const char* name, const char* doc) {
  return row<function>(name, "operand", doc);
}
template <Op (*function)(Operand, Op, Span<int64_t>)>
constexpr Row binary(const char* name, const char* doc) {
  return row<function>(name, "lhs, rhs, broadcast_dimensions?", doc);
}
using Ints = Span<int64_t>;
using Ops = Span<Op>;
using Groups = Span<ReplicaGroup>;

constexpr Row kRows[] = {
    // ---- Values that are known, parameters ----
    row<+[](Within b, int64_t n, const Shape& shape, const std::string& name) {
      return Parameter(b, n, shape, name);
    }>("parameter", "builder, parameter_number, shape, name", "A parameter of the computation."),
    row<+[](Within b, const Literal* literal) {
      LAMELLA_CHECK_VALUE(literal != nullptr, "constant_literal: expected a literal, got None");
      return ConstantLiteral(b, *literal);
    }>("constant_literal", "builder, literal", "A constant with the elements of an array."),
    row<+[](Within b, const Shape& shape, int64_t dimension) { return Iota(b, shape, dimension); }>(
        "iota", "builder, shape, iota_dimension?", "0, 1, 2, ... along a dimension."),

    row<+[](Operand operand, Op value) {
      Shape shape = operand.builder()->GetShape(operand).value();
      return Broadcast({value, operand.where}, shape.dimensions());
    }>("full_like", "operand, value", "An array of the operand's shape, full of a number."),

// ---- Each element ----
#define LAMELLA_BUILDER_Unary(Name, name, doc) unary<Name>(name, doc),
#define LAMELLA_BUILDER_Binary(Name, name, doc) binary<Name>(name, doc),
#define LAMELLA_BUILDER_None
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, rule, work, traffic, code, \
                           weight, complex, emitted, same, combines, effects, builder)            \
  LAMELLA_BUILDER_##builder
#include "lamella/graph/hlo/opcode.def"
    row<+[](Operand lhs, Op rhs, Ints dimensions, ComparisonDirection direction) {
      return Compare(lhs, rhs, dimensions, direction);
    }>("compare", "lhs, rhs, broadcast_dimensions, direction",
       "Pred; direction: 'EQ', 'NE', 'GE', 'GT', 'LE', 'LT'."),
    row<+[](Operand lhs, Op rhs, Ints dimensions, ComparisonDirection direction,
            Comparison::Type type) { return Compare(lhs, rhs, dimensions, direction, type); }>(
        "compare_with_type", "lhs, rhs, broadcast_dimensions, direction, compare_type",
        "compare by a given order: 'FLOAT', 'TOTALORDER', 'SIGNED', 'UNSIGNED'."),
    binary<Eq>("eq", "Pred: lhs == rhs."),
    binary<Ne>("ne", "Pred: lhs != rhs."),
    binary<Ge>("ge", "Pred: lhs >= rhs."),
    binary<Gt>("gt", "Pred: lhs > rhs."),
    binary<Le>("le", "Pred: lhs <= rhs."),
    binary<Lt>("lt", "Pred: lhs < rhs."),
    binary<EqTotalOrder>("eq_total_order", "Equal in the total order of floats."),
    binary<NeTotalOrder>("ne_total_order", "Not equal in the total order of floats."),
    binary<GeTotalOrder>("ge_total_order", "lhs >= rhs in the total order of floats."),
    binary<GtTotalOrder>("gt_total_order", "lhs > rhs in the total order of floats."),
    binary<LeTotalOrder>("le_total_order", "lhs <= rhs in the total order of floats."),
    binary<LtTotalOrder>("lt_total_order", "lhs < rhs in the total order of floats."),
    unary<Conj>("conj", "The complex conjugate."),
    unary<Square>("square", "operand * operand."),
    unary<Reciprocal>("reciprocal", "1 / operand."),
    unary<IsInf>("is_inf", "Pred: an infinity."),
    unary<IsPosInf>("is_pos_inf", "Pred: infinity."),
    unary<IsNegInf>("is_neg_inf", "Pred: -infinity."),
    unary<IsNan>("is_nan", "Pred: not a number."),
    unary<IsNegZero>("is_neg_zero", "Pred: -0."),
    row<ConvertElementType>("convert_element_type", "operand, new_element_type",
                            "To another element type, by value."),
    row<BitcastConvertType>("bitcast_convert_type", "operand, new_element_type",
                            "To another element type, by bits."),
    row<ReducePrecision>("reduce_precision", "operand, exponent_bits, mantissa_bits",
                         "Rounds to a format of so many bits, without changing the element type."),
    row<Select>("select", "pred, on_true, on_false", "on_true where pred, otherwise on_false."),
    row<Clamp>("clamp", "min, operand, max", "min(max(min, operand), max)."),

    // ---- Moving elements ----
    row<Broadcast>("broadcast", "operand, broadcast_sizes", "New dimensions in front."),
    row<BroadcastInDim>("broadcast_in_dim", "operand, out_dim_size, broadcast_dimensions",
                        "Dimension d becomes dimension broadcast_dimensions[d]."),
    row<+[](Operand operand, Ints new_sizes) { return Reshape(operand, new_sizes); }>(
        "reshape", "operand, new_sizes", "The same elements in other dimensions."),
    row<Collapse>("collapse", "operand, dimensions", "Joins consecutive dimensions."),
    row<DynamicReshape>("dynamic_reshape", "operand, dim_sizes, new_size_bounds, dims_are_dynamic",
                        "Sizes at run time, at most new_size_bounds."),
    row<Transpose>("transpose", "operand, permutation",
                   "Dimension d is dimension permutation[d] of the operand."),
    row<Rev>("rev", "operand, dimensions", "Reverses dimensions."),
    row<Slice>("slice", "operand, start_indices, limit_indices, strides",
               "Elements from start to limit, a stride apart."),
    row<SliceInDim>("slice_in_dim", "operand, start_index, limit_index, stride, dimno",
                    "A slice of one dimension."),
    row<+[](Operand operand, Ops starts, Ints sizes) {
      return DynamicSlice(operand, starts, sizes);
    }>("dynamic_slice", "operand, start_indices, slice_sizes",
       "A slice that starts at indices given as scalars, clamped to be inside the operand."),
    row<+[](Operand operand, Op update, Ops starts) {
      return DynamicUpdateSlice(operand, update, starts);
    }>("dynamic_update_slice", "operand, update, start_indices",
       "The operand with the slice at these indices replaced by `update`."),
    row<ConcatInDim>("concat_in_dim", "builder, operands, dimension",
                     "Operands one after the other along a dimension."),
    row<Pad>("pad", "operand, padding_value, padding_config",
             "(low, high, interior) of each dimension; negative edges remove elements."),
    row<PadInDim>("pad_in_dim", "operand, padding_value, dimno, pad_lo, pad_hi",
                  "Pads one dimension."),
    row<Gather>("gather",
                "input, start_indices, dimension_numbers, slice_sizes, indices_are_sorted?",
                "Slices that start at start_indices."),
    row<GetDimensionSize>("get_dimension_size", "operand, dimension",
                          "S32: the size at run time of a dimension."),
    row<SetDimensionSize>("set_dimension_size", "operand, val, dimension",
                          "States the size at run time of a dimension."),
    row<RemoveDynamicDimension>("remove_dynamic_dimension", "operand, dimension",
                                "Makes a dimension as long as its bound."),

    // ---- With computations ----
    row<+[](Operand operand, Op init, const BuiltComputation& f, Ints dimensions) {
      return Reduce(operand, init, f, dimensions);
    }>("_reduce", "operand, init_value, computation, dimensions_to_reduce", ""),
    row<+[](Within b, Ops operands, Ops inits, const BuiltComputation& f, Ints dimensions) {
      return Reduce(b, operands, inits, f, dimensions);
    }>("_reduce_many", "builder, operands, init_values, computation, dimensions_to_reduce", ""),
    row<+[](Operand operand, Op init, const BuiltComputation& f, Ints window, Ints strides,
            Padding padding) { return ReduceWindow(operand, init, f, window, strides, padding); }>(
        "_reduce_window",
        "operand, init_value, computation, window_dimensions, window_strides, padding", ""),
    row<+[](Operands operands, Ops inits, const BuiltComputation& f, Ints window, Ints strides,
            Padding padding) {
      return ReduceWindow(operands, inits, f, window, strides, padding);
    }>("_reduce_window_many",
       "operands, init_values, computation, window_dimensions, window_strides, padding", ""),
    row<+[](Operand operand, Op init, const BuiltComputation& f, Ints window, Ints strides,
            Ints base, Ints dilations, Span<std::pair<int64_t, int64_t>> padding) {
      return ReduceWindowWithGeneralPadding(operand, init, f, window, strides, base, dilations,
                                            padding);
    }>("_reduce_window_padded",
       "operand, init_value, computation, window_dimensions, window_strides, base_dilations, "
       "window_dilations, padding",
       ""),
    row<+[](Operands operands, Ops inits, const BuiltComputation& f, Ints window, Ints strides,
            Ints base, Ints dilations, Span<std::pair<int64_t, int64_t>> padding) {
      return ReduceWindowWithGeneralPadding(operands, inits, f, window, strides, base, dilations,
                                            padding);
    }>("_reduce_window_padded_many",
       "operands, init_values, computation, window_dimensions, window_strides, base_dilations, "
       "window_dilations, padding",
       ""),
    row<SelectAndScatter>("_select_and_scatter",
                          "operand, select, window_dimensions, window_strides, padding, source, "
                          "init_value, scatter",
                          ""),
    row<SelectAndScatterWithGeneralPadding>(
        "_select_and_scatter_padded",
        "operand, select, window_dimensions, window_strides, padding, source, init_value, scatter",
        ""),
    row<+[](Operand input, Op indices, Op updates, const BuiltComputation& f,
            const ScatterDimensionNumbers& numbers, bool sorted, bool unique) {
      return Scatter(input, indices, updates, f, numbers, sorted, unique);
    }>("_scatter",
       "input, scatter_indices, updates, update_computation, dimension_numbers, "
       "indices_are_sorted?, unique_indices?",
       ""),
    row<+[](Operands inputs, Op indices, Ops updates, const BuiltComputation& f,
            const ScatterDimensionNumbers& numbers, bool sorted, bool unique) {
      return Scatter(inputs, indices, updates, f, numbers, sorted, unique);
    }>("_scatter_many",
       "inputs, scatter_indices, updates, update_computation, dimension_numbers, "
       "indices_are_sorted?, unique_indices?",
       ""),
    row<Sort>("_sort", "operands, comparator, dimension, is_stable", ""),
    row<TopK>("top_k", "operand, k, largest",
              "The k largest (or smallest) along the last dimension, and their indices."),
    row<+[](Within b, Ops operands, const BuiltComputation& f, Ints dimensions) {
      return Map(b, operands, f, dimensions);
    }>("_map", "builder, operands, computation, dimensions", ""),
    row<While>("_while", "condition, body, init", ""),
    row<+[](Operand index, Span<const BuiltComputation*> branches, Ops operands) {
      return Conditional(index, branches, operands);
    }>("_conditional_branches", "branch_index, branch_computations, branch_operands", ""),
    row<+[](Operand pred, Op on_true, const BuiltComputation& f, Op on_false,
            const BuiltComputation& g) { return Conditional(pred, on_true, f, on_false, g); }>(
        "_conditional",
        "predicate, true_operand, true_computation, false_operand, false_computation", ""),
    row<Call>("_call", "builder, computation, operands", ""),
    row<CompositeCall>("_composite_call",
                       "builder, computation, operands, name, attributes?, version?", ""),

    // ---- Tuples, tokens ----
    row<Tuple>("tuple", "builder, elements", "A tuple of values."),
    row<GetTupleElement>("get_tuple_element", "tuple_data, index", "One value of a tuple."),
    row<OptimizationBarrier>("optimization_barrier", "operand",
                             "The operand; no instruction is moved across the barrier."),
    row<CreateToken>("create_token", "builder", "A token."),
    row<AfterAll>("after_all", "builder, tokens", "A token that comes after all of these."),

    // ---- Products, transforms, linear algebra ----
    row<Dot>("dot", "lhs, rhs, precision_config?, preferred_element_type?",
             "Sums over the last dimension of lhs and the first of rhs."),
    row<DotGeneral>("dot_general",
                    "lhs, rhs, dimension_numbers, precision_config?, preferred_element_type?",
                    "Batch dimensions first, then the others of lhs, then those of rhs."),
    row<Conv>("conv",
              "lhs, rhs, window_strides, padding, feature_group_count, batch_group_count, "
              "precision_config?, preferred_element_type?",
              "Batch, features, spatial dimensions; padding: 'SAME' or 'VALID'."),
    row<ConvWithGeneralPadding>(
        "conv_with_general_padding",
        "lhs, rhs, window_strides, padding, feature_group_count, batch_group_count, "
        "precision_config?, preferred_element_type?",
        "As conv, with (low, high) of each dimension."),
    row<ConvWithGeneralDimensions>(
        "conv_with_general_dimensions",
        "lhs, rhs, window_strides, padding, dimension_numbers, feature_group_count, "
        "batch_group_count, precision_config?, preferred_element_type?",
        "As conv, with numbers of dimensions."),
    row<ConvGeneral>("conv_general",
                     "lhs, rhs, window_strides, padding, dimension_numbers, feature_group_count, "
                     "batch_group_count, precision_config?, preferred_element_type?",
                     "With padding and numbers of dimensions."),
    row<ConvGeneralDilated>(
        "conv_general_dilated",
        "lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, "
        "feature_group_count, batch_group_count, precision_config?, preferred_element_type?, "
        "window_reversal?",
        "With dilation of the input and of the kernel."),
    row<Fft>("fft", "operand, fft_type, fft_length",
             "Transforms the last dimensions; fft_type: 'FFT', 'IFFT', 'RFFT', 'IRFFT'."),
    row<TriangularSolve>("triangular_solve", "a, b, left_side, lower, unit_diagonal, transpose_a?",
                         "x with op(a) x = b, or x op(a) = b; a is triangular."),
    row<Cholesky>("cholesky", "a, lower", "The triangle l of a = l l^H, or u of a = u^H u."),

    // ---- Random numbers, normalisation ----
    row<RngUniform>("rng_uniform", "a, b, shape", "From the interval [a, b)."),
    row<RngNormal>("rng_normal", "mu, sigma, shape", "Normal, with this mean and deviation."),
    row<RngBitGenerator>("rng_bit_generator", "algorithm, initial_state, shape",
                         "(next state, bits): the same for the same state."),
    row<BatchNormTraining>("batch_norm_training", "operand, scale, offset, epsilon, feature_index",
                           "(normalised, mean, variance)."),
    row<BatchNormInference>("batch_norm_inference",
                            "operand, scale, offset, mean, variance, epsilon, feature_index",
                            "Normalised with statistics that are known."),
    row<BatchNormGrad>("batch_norm_grad",
                       "operand, scale, batch_mean, batch_var, grad_output, epsilon, feature_index",
                       "(gradient of the operand, of the scale, of the offset)."),

    // ---- Custom calls ----
    row<CustomCall>("custom_call",
                    "builder, call_target_name, operands, shape, opaque?, has_side_effect?, "
                    "output_operand_aliasing?, literal?, schedule?, api_version?",
                    "Calls the target with this name, which is looked up when the module is "
                    "compiled."),
    row<CustomCallWithComputation>(
        "custom_call_with_computation",
        "builder, call_target_name, operands, computation, shape, opaque?, has_side_effect?, "
        "output_operand_aliasing?, literal?, schedule?, api_version?",
        "With a computation that the target may run."),
    row<CustomCallWithLayout>(
        "custom_call_with_layout",
        "builder, call_target_name, operands, shape_with_layout, operand_shapes_with_layout, "
        "opaque?, has_side_effect?, output_operand_aliasing?, literal?, schedule?, api_version?",
        "Operands are handed over in these layouts."),

    // ---- Replicas, the host ----
    row<ReplicaId>("replica_id", "builder", "U32: the number of the replica."),
    row<+[](Operand operand, const BuiltComputation& f, Groups groups) {
      return AllReduce(operand, f, groups);
    }>("_all_reduce", "operand, computation, replica_groups?", ""),
    row<CrossReplicaSum>("cross_replica_sum", "operand, replica_groups?",
                         "The sum over all replicas of a group."),
    row<+[](Operand operand, int64_t dimension, int64_t count, Groups groups) {
      return AllGather(operand, dimension, count, groups);
    }>("all_gather", "operand, all_gather_dimension, shard_count, replica_groups?",
       "Joins the operands of the replicas of a group along a dimension."),
    row<+[](Operand operand, int64_t split, int64_t concat, int64_t count, Groups groups) {
      return AllToAll(operand, split, concat, count, groups);
    }>("all_to_all", "operand, split_dimension, concat_dimension, split_count, replica_groups?",
       "Part i along split_dimension goes to the i-th replica."),
    row<+[](Operand operand, const BuiltComputation& f, int64_t dimension, int64_t count,
            Groups groups) { return ReduceScatter(operand, f, dimension, count, groups); }>(
        "_reduce_scatter", "operand, computation, scatter_dimension, shard_count, replica_groups?",
        ""),
    row<+[](Operand operand, Groups groups) { return CollectiveBroadcast(operand, groups); }>(
        "collective_broadcast", "operand, replica_groups",
        "The operand of the first replica of each group."),
    row<+[](Operand operand, Span<std::pair<int64_t, int64_t>> pairs) {
      return CollectivePermute(operand, pairs);
    }>("collective_permute", "operand, source_target_pairs",
       "Sends each replica's operand to the target in the pairs."),
    row<Infeed>("infeed", "builder, shape, config?", "The next data that the host feeds."),
    row<InfeedWithToken>("infeed_with_token", "token, shape, config?",
                         "(data, token), ordered after the token."),
    row<OutfeedWithToken>("outfeed_with_token",
                          "operand, token, shape_with_layout, outfeed_config?",
                          "Passes the operand to the host."),
};

}  // namespace

std::span<const Row> builder_rows() { return kRows; }

}  // namespace lamella::python
