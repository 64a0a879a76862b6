// Functions that make and print the options of builder functions.
#include "lamella/graph/builder/types.h"

#include "lamella/graph/hlo/shape.h"

namespace lamella::hlo {

PaddingConfig MakeEdgePaddingConfig(const std::vector<std::pair<int64_t, int64_t>>& padding) {
  PaddingConfig config;
  for (const auto& [low, high] : padding) {
    auto* dimension = config.add_dimensions();
    dimension->set_edge_padding_low(low);
    dimension->set_edge_padding_high(high);
  }
  return config;
}
PaddingConfig MakeNoPaddingConfig(int64_t rank) {
  PaddingConfig config;
  for (int64_t d = 0; d < rank; ++d) config.add_dimensions();
  return config;
}

Comparison::Comparison(Direction direction, PrimitiveType type)
    : Comparison(direction, type,
                 is_floating(type) || is_complex(type) ? Order::kPartial : Order::kTotal) {}
Comparison::Type Comparison::GetType() const {
  if (is_floating(type_) || is_complex(type_)) {
    return IsTotalOrder() ? Type::kFloatTotalOrder : Type::kFloat;
  }
  return element_kind(type_) == ElementKind::Signed ? Type::kSigned : Type::kUnsigned;
}
Comparison Comparison::Converse() const {
  Direction other = direction_;
  if (IsGe()) other = Direction::kLe;
  if (IsGt()) other = Direction::kLt;
  if (IsLt()) other = Direction::kGt;
  if (direction_ == Direction::kLe) other = Direction::kGe;
  return {other, type_, order_};
}
std::optional<Comparison> Comparison::Inverse() const {
  if (IsPartialOrder() && !IsEq() && !IsNe()) return std::nullopt;
  static constexpr Direction kInverses[] = {Direction::kNe, Direction::kEq, Direction::kLt,
                                            Direction::kLe, Direction::kGt, Direction::kGe};
  return Comparison(kInverses[static_cast<size_t>(direction_)], type_, order_);
}
std::string Comparison::ToString() const { return ComparisonDirectionToString(direction_); }
std::string ComparisonDirectionToString(ComparisonDirection direction) {
  static constexpr const char* kNames[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  return kNames[static_cast<size_t>(direction)];
}

std::string OpSharding::to_string() const {
  std::string text = "{";
  auto list = [&](const std::vector<int64_t>& numbers) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (i != 0) text += ',';
      text += std::to_string(numbers[i]);
    }
  };
  switch (type_) {
    case REPLICATED:
      text += "replicated";
      break;
    case MANUAL:
      text += "manual";
      break;
    case MAXIMAL:
      text += "maximal device=";
      list(tile_assignment_devices_);
      break;
    case TUPLE:
      for (size_t i = 0; i < tuple_.size(); ++i) {
        if (i != 0) text += ", ";
        text += tuple_[i].to_string();
      }
      break;
    case OTHER:
      text += "devices=[";
      list(tile_assignment_dimensions_);
      text += ']';
      list(tile_assignment_devices_);
      break;
  }
  return text += '}';
}

namespace sharding_builder {
OpSharding Replicate() { return {}; }
OpSharding Manual() {
  OpSharding sharding;
  sharding.set_type(OpSharding::MANUAL);
  return sharding;
}
OpSharding AssignDevice(int device) {
  OpSharding sharding;
  sharding.set_type(OpSharding::MAXIMAL);
  sharding.add_tile_assignment_dimensions(1);
  sharding.add_tile_assignment_devices(device);
  return sharding;
}
OpSharding Tile(const std::vector<int64_t>& dimensions, const std::vector<int64_t>& devices) {
  OpSharding sharding;
  sharding.set_type(OpSharding::OTHER);
  *sharding.mutable_tile_assignment_dimensions() = dimensions;
  *sharding.mutable_tile_assignment_devices() = devices;
  return sharding;
}
OpSharding Tile1D(int64_t devices) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < devices; ++i) all.push_back(i);
  return Tile({devices}, all);
}
OpSharding Tuple(const std::vector<OpSharding>& shardings) {
  OpSharding sharding;
  sharding.set_type(OpSharding::TUPLE);
  for (const OpSharding& one : shardings) sharding.add_tuple_shardings(one);
  return sharding;
}
}  // namespace sharding_builder

}  // namespace lamella::hlo
