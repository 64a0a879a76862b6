// What the forms that StableHLO prints call attributes. Internal to lamella/graph/stablehlo.
#pragma once
#include <string_view>

namespace lamella::hlo::stablehlo {

struct Form {
  std::string_view operation, printed, attribute;
};
inline constexpr Form kForms[] = {
    {"broadcast_in_dim", "dims", "broadcast_dimensions"},
    {"dynamic_broadcast_in_dim", "dims", "broadcast_dimensions"},
    {"reverse", "dims", "dimensions"},
    {"transpose", "dims", "permutation"},
    {"iota", "dim", "iota_dimension"},
    {"dynamic_iota", "dim", "iota_dimension"},
    {"concatenate", "dim", "dimension"},
    {"get_dimension_size", "dim", "dimension"},
    {"set_dimension_size", "dim", "dimension"},
    {"dynamic_slice", "sizes", "slice_sizes"},
    {"broadcast", "sizes", "broadcast_sizes"},
    {"pad", "low", "edge_padding_low"},
    {"pad", "high", "edge_padding_high"},
    {"pad", "interior", "interior_padding"},
    {"fft", "type", "fft_type"},
    {"fft", "length", "fft_length"},
    {"rng", "distribution", "rng_distribution"},
    {"rng_bit_generator", "algorithm", "rng_algorithm"},
    {"einsum", "config", "einsum_config"},
    {"unary_einsum", "config", "einsum_config"},
    {"dot", "precision", "precision_config"},
    {"dot_general", "precision", "precision_config"},
};
// Attributes that are structures: their parts become the operation's.
inline constexpr std::string_view kStructures[] = {"dimension_numbers", "dot_dimension_numbers",
                                                   "scatter_dimension_numbers", "channel_handle",
                                                   "algorithm"};
// Parts that a structure leaves out where they are empty, or 0.
inline constexpr Form kOmitted[] = {
    {"gather", "list", "offset_dims"},
    {"gather", "list", "collapsed_slice_dims"},
    {"gather", "list", "start_index_map"},
    {"gather", "0", "index_vector_dim"},
    {"dynamic_gather", "list", "offset_dims"},
    {"dynamic_gather", "list", "collapsed_slice_dims"},
    {"dynamic_gather", "list", "start_index_map"},
    {"dynamic_gather", "0", "index_vector_dim"},
    {"scatter", "list", "update_window_dims"},
    {"scatter", "list", "inserted_window_dims"},
    {"scatter", "list", "scatter_dims_to_operand_dims"},
    {"scatter", "0", "index_vector_dim"},
    {"dot_general", "list", "lhs_batching_dimensions"},
    {"dot_general", "list", "rhs_batching_dimensions"},
    {"dot_general", "list", "lhs_contracting_dimensions"},
    {"dot_general", "list", "rhs_contracting_dimensions"},
};

}  // namespace lamella::hlo::stablehlo
