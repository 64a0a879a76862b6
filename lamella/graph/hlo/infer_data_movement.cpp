// Shape inference of operations that move elements.
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {

Shape infer_broadcast(const Instruction& i) {
  const Shape& operand = array_operand(i, 0);
  std::span<const int64_t> dimensions = i.integers(AttributeKey::Dimensions);
  LAMELLA_HLO_REQUIRE(i.shape->is_array(), i, "expected an array, got ", i.shape->to_string(false));
  LAMELLA_HLO_REQUIRE(dimensions.size() == operand.dimensions().size(), i,
                      "expected dimensions to name ", operand.rank(), " dimensions, got ",
                      braced(dimensions));
  require_dimensions(i, AttributeKey::Dimensions, dimensions, i.shape->rank());
  for (size_t d = 0; d < dimensions.size(); ++d) {
    int64_t from = operand.dimensions()[d], to = i.shape->dimension(dimensions[d]);
    LAMELLA_HLO_REQUIRE(from == to, i, "expected dimension ", dimensions[d],
                        " of the result to be ", from, " as dimension ", d, " of the operand, got ",
                        to);
  }
  return i.shape->with_element_type(operand.element_type());
}

Shape infer_reshape(const Instruction& i) {
  const Shape& operand = array_operand(i, 0);
  LAMELLA_HLO_REQUIRE(i.shape->is_array() && i.shape->elements() == operand.elements(), i,
                      "expected ", operand.elements(), " elements as in ", operand.to_string(false),
                      ", got ", i.shape->to_string(false));
  return i.shape->with_element_type(operand.element_type());
}

Shape infer_transpose(const Instruction& i) {
  const Shape& operand = array_operand(i, 0);
  std::span<const int64_t> order = i.integers(AttributeKey::Dimensions);
  LAMELLA_HLO_REQUIRE(static_cast<int64_t>(order.size()) == operand.rank(), i,
                      "expected dimensions to name ", operand.rank(), " dimensions, got ",
                      braced(order));
  require_dimensions(i, AttributeKey::Dimensions, order, operand.rank());
  std::vector<int64_t> sizes;
  for (int64_t d : order) sizes.push_back(operand.dimension(d));
  return operand.with_dimensions(std::move(sizes));
}

Shape infer_slice(const Instruction& i) {
  const Shape& operand = array_operand(i, 0);
  const Attribute* slice = i.find(AttributeKey::Slice);
  auto parts = slice != nullptr ? slice->slices() : std::span<const SliceDimension>();
  LAMELLA_HLO_REQUIRE(static_cast<int64_t>(parts.size()) == operand.rank(), i,
                      "expected slice to have ", operand.rank(), " ranges, got ", parts.size());
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < parts.size(); ++d) {
    const SliceDimension& part = parts[d];
    LAMELLA_HLO_REQUIRE(part.start >= 0 && part.start <= part.limit &&
                            part.limit <= operand.dimensions()[d] && part.stride > 0,
                        i, "expected the range of dimension ", d, " to lie in 0 to ",
                        operand.dimensions()[d], " with a positive stride, got [", part.start, ":",
                        part.limit, ":", part.stride, "]");
    int64_t length = part.limit - part.start;
    sizes.push_back(length == 0 ? 0 : (length - 1) / part.stride + 1);
  }
  return operand.with_dimensions(std::move(sizes));
}

namespace {

// Checks the start indices of a dynamic slice: a scalar for each dimension, or one array of all.
void require_starts(const Instruction& i, size_t first, int64_t rank) {
  size_t count = i.operands.size() - first;
  if (count == 1 && array_operand(i, first).rank() == 1) {
    const Shape& starts = i.operand_shape(first);
    LAMELLA_HLO_REQUIRE(is_integral(starts.element_type()) && starts.dimension(0) == rank, i,
                        "expected operand ", first, " to hold ", rank, " integers, got ",
                        starts.to_string(false));
    return;
  }
  LAMELLA_HLO_REQUIRE(static_cast<int64_t>(count) == rank, i, "expected ", rank,
                      " operands with start indices, got ", count);
  for (size_t n = first; n < i.operands.size(); ++n) {
    const Shape& start = array_operand(i, n);
    LAMELLA_HLO_REQUIRE(start.is_scalar() && is_integral(start.element_type()), i,
                        "expected operand ", n, " to be an integer, got ", start.to_string(false));
  }
}
}  // namespace

Shape infer_dynamic_slice(const Instruction& i) {
  LAMELLA_HLO_REQUIRE(!i.operands.empty(), i, "expected operands, got none");
  const Shape& operand = array_operand(i, 0);
  std::span<const int64_t> sizes = i.integers(AttributeKey::DynamicSliceSizes);
  LAMELLA_HLO_REQUIRE(static_cast<int64_t>(sizes.size()) == operand.rank(), i,
                      "expected dynamic_slice_sizes to have ", operand.rank(), " sizes, got ",
                      braced(sizes));
  for (size_t d = 0; d < sizes.size(); ++d) {
    LAMELLA_HLO_REQUIRE(sizes[d] >= 0 && sizes[d] <= operand.dimensions()[d], i,
                        "expected dynamic_slice_sizes to be at most those of ",
                        operand.to_string(false), ", got ", braced(sizes));
  }
  require_starts(i, 1, operand.rank());
  return operand.with_dimensions(copy_of(sizes));
}

Shape infer_dynamic_update_slice(const Instruction& i) {
  LAMELLA_HLO_REQUIRE(i.operands.size() >= 2, i, "expected 2 operands or more, got ",
                      i.operands.size());
  const Shape& operand = array_operand(i, 0);
  const Shape& update = array_operand(i, 1);
  bool fits = update.element_type() == operand.element_type() && update.rank() == operand.rank();
  for (int64_t d = 0; fits && d < operand.rank(); ++d) {
    fits = update.dimension(d) <= operand.dimension(d);
  }
  LAMELLA_HLO_REQUIRE(fits, i, "expected operand 1 to fit into ", operand.to_string(false),
                      ", got ", update.to_string(false));
  require_starts(i, 2, operand.rank());
  return operand;
}

Shape infer_concatenate(const Instruction& i) {
  LAMELLA_HLO_REQUIRE(!i.operands.empty(), i, "expected operands, got none");
  const Shape& first = array_operand(i, 0);
  std::span<const int64_t> dimensions = i.integers(AttributeKey::Dimensions);
  LAMELLA_HLO_REQUIRE(dimensions.size() == 1, i, "expected dimensions to name one dimension, got ",
                      braced(dimensions));
  require_dimensions(i, AttributeKey::Dimensions, dimensions, first.rank());
  std::vector<int64_t> sizes = copy_of(first.dimensions());
  for (size_t n = 1; n < i.operands.size(); ++n) {
    const Shape& other = array_operand(i, n);
    bool fits = other.element_type() == first.element_type() && other.rank() == first.rank();
    for (int64_t d = 0; fits && d < first.rank(); ++d) {
      fits = d == dimensions[0] || other.dimension(d) == first.dimension(d);
    }
    LAMELLA_HLO_REQUIRE(fits, i, "expected operands that differ in dimension ", dimensions[0],
                        " alone, got ", first.to_string(false), " and ", other.to_string(false));
    int64_t& sum = sizes[static_cast<size_t>(dimensions[0])];
    sum += other.dimension(dimensions[0]);
    LAMELLA_HLO_REQUIRE(sum <= kMostElements, i,
                        "expected the operands to have at most 2^60 elements in dimension ",
                        dimensions[0], ", got ", sum);
  }
  return first.with_dimensions(std::move(sizes));
}

Shape infer_pad(const Instruction& i) {
  const Shape& operand = array_operand(i, 0);
  const Shape& value = array_operand(i, 1);
  LAMELLA_HLO_REQUIRE(value.is_scalar() && value.element_type() == operand.element_type(), i,
                      "expected operand 1 to be a scalar of ", element_name(operand.element_type()),
                      ", got ", value.to_string(false));
  const Attribute* padding = i.find(AttributeKey::Padding);
  auto parts = padding != nullptr ? padding->padding() : std::span<const PaddingDimension>();
  LAMELLA_HLO_REQUIRE(static_cast<int64_t>(parts.size()) == operand.rank(), i,
                      "expected padding for ", operand.rank(), " dimensions, got ", parts.size());
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < parts.size(); ++d) {
    LAMELLA_HLO_REQUIRE(parts[d].interior >= 0, i,
                        "expected interior padding that is not negative, got ", parts[d].interior);
    for (int64_t number : {parts[d].low, parts[d].high, parts[d].interior}) {
      require_moderate(i, "padding", number);
    }
    sizes.push_back(reach(i, operand.dimensions()[d], parts[d].interior + 1) + parts[d].low +
                    parts[d].high);
    LAMELLA_HLO_REQUIRE(sizes.back() >= 0, i,
                        "expected padding to leave a size that is not negative in ", "dimension ",
                        d, ", got ", sizes.back());
  }
  return operand.with_dimensions(std::move(sizes));
}

// Operand 0 is the array, and the others are the sizes of the result's dimensions.
Shape infer_dynamic_reshape(const Instruction& i) {
  LAMELLA_HLO_REQUIRE(!i.operands.empty(), i, "expected operands, got none");
  const Shape& operand = array_operand(i, 0);
  const Shape& shape = *i.shape;
  bool fits = shape.is_array() && static_cast<int64_t>(i.operands.size()) == shape.rank() + 1 &&
              operand.elements() == shape.elements();
  LAMELLA_HLO_REQUIRE(fits, i, "expected as many elements as ", shape.to_string(false),
                      " and a size for each of its dimensions, got ", operand.to_string(false),
                      " and ", i.operands.size() - 1);
  require_starts(i, 1, shape.rank());
  return shape.with_element_type(operand.element_type());
}

Shape infer_reverse(const Instruction& i) {
  const Shape& operand = array_operand(i, 0);
  require_dimensions(i, AttributeKey::Dimensions, i.integers(AttributeKey::Dimensions),
                     operand.rank());
  return operand;
}

Shape infer_iota(const Instruction& i) {
  int64_t dimension = i.integer(AttributeKey::IotaDimension, -1);
  LAMELLA_HLO_REQUIRE(i.shape->is_array() && dimension >= 0 && dimension < i.shape->rank(), i,
                      "expected iota_dimension to name a dimension of ", i.shape->to_string(false),
                      ", got ", dimension);
  LAMELLA_HLO_REQUIRE(i.shape->element_type() != ElementType::PRED, i,
                      "expected iota of numbers, got ", i.shape->to_string(false));
  return *i.shape;
}

Shape infer_get_dimension_size(const Instruction& i) {
  const Shape& operand = array_operand(i, 0);
  std::span<const int64_t> dimensions = i.integers(AttributeKey::Dimensions);
  require_dimensions(i, AttributeKey::Dimensions, dimensions, operand.rank());
  LAMELLA_HLO_REQUIRE(dimensions.size() == 1, i, "expected dimensions to name one dimension, got ",
                      braced(dimensions));
  LAMELLA_HLO_REQUIRE(operand.dimension(dimensions[0]) <= INT32_MAX, i,
                      "expected a size that s32 holds, got ", operand.to_string(false));
  return Shape::scalar(ElementType::S32);
}

Shape infer_set_dimension_size(const Instruction& i) {
  const Shape& size = array_operand(i, 1);
  LAMELLA_HLO_REQUIRE(size.is_scalar() && size.element_type() == ElementType::S32, i,
                      "expected operand 1 to be s32[], got ", size.to_string(false));
  Shape result = array_operand(i, 0);
  auto dimensions = i.integers(AttributeKey::Dimensions);
  require_dimensions(i, AttributeKey::Dimensions, dimensions, result.rank());
  LAMELLA_HLO_REQUIRE(dimensions.size() == 1, i, "expected dimensions to name one dimension, got ",
                      braced(dimensions));
  result.set_dynamic(dimensions[0]);
  return result;
}

Shape infer_bitcast(const Instruction& i) {
  const Shape& operand = array_operand(i, 0);
  LAMELLA_HLO_REQUIRE(i.shape->is_array() && i.shape->bytes() == operand.bytes(), i, "expected ",
                      operand.bytes(), " bytes as in ", operand.to_string(), ", got ",
                      i.shape->to_string());
  return *i.shape;
}

}  // namespace lamella::hlo
