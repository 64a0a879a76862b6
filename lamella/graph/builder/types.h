// Types of the arguments of builder functions other than ops: dimension numbers, padding, enums and
// options. Types and their setters have XLA's names (xla_data.proto).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lamella/graph/hlo/element_type.h"

namespace lamella::hlo {

using PrimitiveType = ElementType;

// The index of an element in nested tuples: {} is the whole value, {1, 0} element 0 of element 1.
using ShapeIndex = std::vector<int64_t>;

// A list of integers with the accessors of a repeated protobuf field: x_size(), x(i), x(),
// mutable_x(), add_x(v), clear_x().
#define LAMELLA_HLO_REPEATED(field)                                               \
 public:                                                                          \
  int field##_size() const { return static_cast<int>(field##_.size()); }          \
  int64_t field(int i) const { return field##_.at(static_cast<size_t>(i)); }      \
  const std::vector<int64_t>& field() const { return field##_; }                  \
  std::vector<int64_t>* mutable_##field() { return &field##_; }                   \
  void add_##field(int64_t value) { field##_.push_back(value); }                  \
  void set_##field(int i, int64_t v) { field##_.at(static_cast<size_t>(i)) = v; } \
  void clear_##field() { field##_.clear(); }                                      \
                                                                                  \
 private:                                                                         \
  std::vector<int64_t> field##_;
// A field with the accessors x() and set_x(v).
#define LAMELLA_HLO_FIELD(type, field, otherwise)               \
 public:                                                        \
  const type& field() const { return field##_; }                \
  void set_##field(type value) { field##_ = std::move(value); } \
                                                                \
 private:                                                       \
  type field##_ = otherwise;

class DotDimensionNumbers {
  LAMELLA_HLO_REPEATED(lhs_contracting_dimensions)
  LAMELLA_HLO_REPEATED(rhs_contracting_dimensions)
  LAMELLA_HLO_REPEATED(lhs_batch_dimensions)
  LAMELLA_HLO_REPEATED(rhs_batch_dimensions)
};
class RaggedDotDimensionNumbers {
  LAMELLA_HLO_REPEATED(lhs_ragged_dimensions)
  LAMELLA_HLO_REPEATED(rhs_group_dimensions)
 public:
  const DotDimensionNumbers& dot_dimension_numbers() const { return dot_; }
  DotDimensionNumbers* mutable_dot_dimension_numbers() { return &dot_; }

 private:
  DotDimensionNumbers dot_;
};
class GatherDimensionNumbers {
  LAMELLA_HLO_REPEATED(offset_dims)
  LAMELLA_HLO_REPEATED(collapsed_slice_dims)
  LAMELLA_HLO_REPEATED(start_index_map)
  LAMELLA_HLO_REPEATED(operand_batching_dims)
  LAMELLA_HLO_REPEATED(start_indices_batching_dims)
  LAMELLA_HLO_FIELD(int64_t, index_vector_dim, 0)
};
class ScatterDimensionNumbers {
  LAMELLA_HLO_REPEATED(update_window_dims)
  LAMELLA_HLO_REPEATED(inserted_window_dims)
  LAMELLA_HLO_REPEATED(scatter_dims_to_operand_dims)
  LAMELLA_HLO_REPEATED(input_batching_dims)
  LAMELLA_HLO_REPEATED(scatter_indices_batching_dims)
  LAMELLA_HLO_FIELD(int64_t, index_vector_dim, 0)
};
class ConvolutionDimensionNumbers {
  LAMELLA_HLO_FIELD(int64_t, input_batch_dimension, 0)
  LAMELLA_HLO_FIELD(int64_t, input_feature_dimension, 0)
  LAMELLA_HLO_REPEATED(input_spatial_dimensions)
  LAMELLA_HLO_FIELD(int64_t, kernel_input_feature_dimension, 0)
  LAMELLA_HLO_FIELD(int64_t, kernel_output_feature_dimension, 0)
  LAMELLA_HLO_REPEATED(kernel_spatial_dimensions)
  LAMELLA_HLO_FIELD(int64_t, output_batch_dimension, 0)
  LAMELLA_HLO_FIELD(int64_t, output_feature_dimension, 0)
  LAMELLA_HLO_REPEATED(output_spatial_dimensions)
};

// Padding of each dimension: before, after, and between elements.
class PaddingConfig {
 public:
  class PaddingConfigDimension {
    LAMELLA_HLO_FIELD(int64_t, edge_padding_low, 0)
    LAMELLA_HLO_FIELD(int64_t, edge_padding_high, 0)
    LAMELLA_HLO_FIELD(int64_t, interior_padding, 0)
  };
  PaddingConfigDimension* add_dimensions() { return &dimensions_.emplace_back(); }
  PaddingConfigDimension* mutable_dimensions(int i) {
    return &dimensions_.at(static_cast<size_t>(i));
  }
  const PaddingConfigDimension& dimensions(int i) const {
    return dimensions_.at(static_cast<size_t>(i));
  }
  const std::vector<PaddingConfigDimension>& dimensions() const { return dimensions_; }
  int dimensions_size() const { return static_cast<int>(dimensions_.size()); }

 private:
  std::vector<PaddingConfigDimension> dimensions_;
};
// Padding from {low, high} of each dimension, without interior padding.
PaddingConfig MakeEdgePaddingConfig(const std::vector<std::pair<int64_t, int64_t>>& padding);
// No padding on any side of `rank` dimensions.
PaddingConfig MakeNoPaddingConfig(int64_t rank);

class PrecisionConfig {
 public:
  enum Precision { DEFAULT = 0, HIGH = 1, HIGHEST = 2, PACKED_NIBBLE = 3 };
  void add_operand_precision(Precision precision) { operand_precision_.push_back(precision); }
  std::vector<Precision>* mutable_operand_precision() { return &operand_precision_; }
  const std::vector<Precision>& operand_precision() const { return operand_precision_; }
  Precision operand_precision(int i) const { return operand_precision_.at(static_cast<size_t>(i)); }
  int operand_precision_size() const { return static_cast<int>(operand_precision_.size()); }

 private:
  std::vector<Precision> operand_precision_;
};

enum class ComparisonDirection : uint8_t { kEq, kNe, kGe, kGt, kLe, kLt };
// A direction, an element type and an order. Floats are compared by IEEE 754 rules (partial order)
// unless another order is given, and all other types in their total order.
class Comparison {
 public:
  using Direction = ComparisonDirection;
  enum class Type : uint8_t { kFloat, kFloatTotalOrder, kSigned, kUnsigned };
  enum class Order : uint8_t { kTotal, kPartial };

  Comparison(Direction direction, PrimitiveType type);
  Comparison(Direction direction, PrimitiveType type, Order order)
      : direction_(direction), type_(type), order_(order) {}
  Direction GetDirection() const { return direction_; }
  PrimitiveType GetPrimitiveType() const { return type_; }
  Order GetOrder() const { return order_; }
  Type GetType() const;
  bool IsEq() const { return direction_ == Direction::kEq; }
  bool IsNe() const { return direction_ == Direction::kNe; }
  bool IsGe() const { return direction_ == Direction::kGe; }
  bool IsGt() const { return direction_ == Direction::kGt; }
  bool IsLt() const { return direction_ == Direction::kLt; }
  bool IsTotalOrder() const { return order_ == Order::kTotal; }
  bool IsPartialOrder() const { return order_ == Order::kPartial; }
  // The comparison with operands exchanged.
  Comparison Converse() const;
  // The negation; none in a partial order, where it is no comparison, except of equality.
  std::optional<Comparison> Inverse() const;
  // "EQ", ...
  std::string ToString() const;
  bool operator==(const Comparison&) const = default;

 private:
  Direction direction_;
  PrimitiveType type_;
  Order order_;
};
using ComparisonOrder = Comparison::Order;
std::string ComparisonDirectionToString(ComparisonDirection direction);

enum class Padding : uint8_t { kSame, kValid };

enum FftType : int { FFT = 0, IFFT = 1, RFFT = 2, IRFFT = 3 };
enum RandomAlgorithm : int { RNG_DEFAULT = 0, RNG_THREE_FRY = 1, RNG_PHILOX = 2 };
class TriangularSolveOptions {
 public:
  enum Transpose : int {
    TRANSPOSE_INVALID = 0,
    NO_TRANSPOSE = 1,  // solve with a
    TRANSPOSE = 2,     // with its transpose
    ADJOINT = 3,       // with its conjugate transpose
  };
};

enum CustomCallSchedule : int { SCHEDULE_NONE = 0, SCHEDULE_LATEST = 1, SCHEDULE_EARLIEST = 2 };
// The calling convention of a custom call's target.
enum CustomCallApiVersion : int {
  API_VERSION_UNSPECIFIED = 0,
  API_VERSION_ORIGINAL = 1,
  API_VERSION_STATUS_RETURNING = 2,
  API_VERSION_STATUS_RETURNING_UNIFIED = 3,
  API_VERSION_TYPED_FFI = 4,
};

class ChannelHandle {
 public:
  enum ChannelType : int {
    CHANNEL_TYPE_INVALID = 0,
    DEVICE_TO_DEVICE = 1,
    DEVICE_TO_HOST = 2,
    HOST_TO_DEVICE = 3,
  };
  LAMELLA_HLO_FIELD(int64_t, handle, 0)
  LAMELLA_HLO_FIELD(ChannelType, type, CHANNEL_TYPE_INVALID)
};
class ReplicaGroup {
  LAMELLA_HLO_REPEATED(replica_ids)
};

// Where an instruction comes from in the user's program.
class OpMetadata {
  LAMELLA_HLO_FIELD(std::string, op_type, {})
  LAMELLA_HLO_FIELD(std::string, op_name, {})
  LAMELLA_HLO_FIELD(std::string, source_file, {})
  LAMELLA_HLO_FIELD(int32_t, source_line, 0)
};
class FrontendAttributes {
 public:
  const std::map<std::string, std::string>& map() const { return map_; }
  std::map<std::string, std::string>* mutable_map() { return &map_; }

 private:
  std::map<std::string, std::string> map_;
};

// How a value is partitioned among devices.
class OpSharding {
 public:
  enum Type : int { REPLICATED = 0, MAXIMAL = 1, TUPLE = 2, OTHER = 3, MANUAL = 4 };
  void add_tuple_shardings(OpSharding sharding) { tuple_.push_back(std::move(sharding)); }
  const std::vector<OpSharding>& tuple_shardings() const { return tuple_; }
  // "{replicated}", "{maximal device=1}", "{devices=[2,1]0,1}".
  std::string to_string() const;

 private:
  std::vector<OpSharding> tuple_;
  LAMELLA_HLO_FIELD(Type, type, REPLICATED)
  LAMELLA_HLO_REPEATED(tile_assignment_dimensions)
  LAMELLA_HLO_REPEATED(tile_assignment_devices)
};
namespace sharding_builder {
OpSharding Replicate();
OpSharding Manual();
OpSharding AssignDevice(int device);
// Tiles over a grid of devices: its dimensions, and its devices in row-major order.
OpSharding Tile(const std::vector<int64_t>& dimensions, const std::vector<int64_t>& devices);
// Partitions the only dimension; device i has part i.
OpSharding Tile1D(int64_t devices);
OpSharding Tuple(const std::vector<OpSharding>& shardings);
}  // namespace sharding_builder

#undef LAMELLA_HLO_REPEATED
#undef LAMELLA_HLO_FIELD

}  // namespace lamella::hlo
