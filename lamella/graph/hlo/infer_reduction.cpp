// Shape inference of reductions, sorts, scans and batch normalisation.
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

// Checks that `to_apply` takes two scalars of each type and returns one scalar of each type.
void require_combiner(const Instruction& i, const std::vector<ElementType>& types) {
  Computation& combiner = computation_of(i, AttributeKey::ToApply);
  std::vector<Shape> scalars;
  for (int round = 0; round < 2; ++round) {
    for (ElementType type : types) scalars.push_back(Shape::scalar(type));
  }
  require_parameters(i, combiner, scalars);
  std::vector<Shape> results(scalars.begin(),
                             scalars.begin() + static_cast<ptrdiff_t>(types.size()));
  Shape result = types.size() == 1 ? results[0] : Shape::tuple(results);
  LAMELLA_HLO_REQUIRE(combiner.root->shape->compatible(result), i, "expected '", combiner.name,
                      "' to give ", result.to_string(false), ", got ",
                      combiner.root->shape->to_string(false));
}
// A variadic reduction: its operands are `count` arrays, then `count` initial values.
struct Variadic {
  size_t count;
  std::vector<ElementType> types;
};
Variadic variadic(const Instruction& i) {
  LAMELLA_HLO_REQUIRE(!i.operands.empty() && i.operands.size() % 2 == 0, i,
                      "expected operands and as many initial values, got ", i.operands.size(),
                      " operands");
  Variadic v{i.operands.size() / 2, {}};
  const Shape& first = array_operand(i, 0);
  for (size_t n = 0; n < v.count; ++n) {
    const Shape& operand = array_operand(i, n);
    const Shape& initial = array_operand(i, v.count + n);
    LAMELLA_HLO_REQUIRE(operand.same_dimensions(first), i,
                        "expected operands of the same dimensions, got ", first.to_string(false),
                        " and ", operand.to_string(false));
    LAMELLA_HLO_REQUIRE(initial.is_scalar() && initial.element_type() == operand.element_type(), i,
                        "expected operand ", v.count + n, " to be a scalar of ",
                        element_name(operand.element_type()), ", got ", initial.to_string(false));
    v.types.push_back(operand.element_type());
  }
  return v;
}
Shape joined(const std::vector<ElementType>& types, const std::vector<int64_t>& sizes) {
  std::vector<Shape> shapes;
  for (ElementType type : types) shapes.push_back(Shape::array(type, sizes));
  return shapes.size() == 1 ? shapes[0] : Shape::tuple(std::move(shapes));
}

}  // namespace

Shape infer_reduce(const Instruction& i) {
  Variadic v = variadic(i);
  const Shape& operand = i.operand_shape(0);
  auto dimensions = i.integers(AttributeKey::Dimensions);
  require_dimensions(i, AttributeKey::Dimensions, dimensions, operand.rank());
  require_combiner(i, v.types);
  std::vector<int64_t> sizes;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (!contains(dimensions, d)) sizes.push_back(operand.dimension(d));
  }
  return joined(v.types, sizes);
}

namespace {
std::span<const WindowDimension> window_of(const Instruction& i) {
  const Attribute* found = i.find(AttributeKey::Window);
  return found != nullptr ? found->window() : std::span<const WindowDimension>();
}
}  // namespace

Shape infer_reduce_window(const Instruction& i) {
  Variadic v = variadic(i);
  require_combiner(i, v.types);
  return joined(v.types, window_sizes(i, i.operand_shape(0).dimensions(), window_of(i)));
}

Shape infer_select_and_scatter(const Instruction& i) {
  const Shape& operand = array_operand(i, 0);
  const Shape& source = array_operand(i, 1);
  const Shape& initial = array_operand(i, 2);
  ElementType type = operand.element_type();
  std::vector<int64_t> sizes = window_sizes(i, operand.dimensions(), window_of(i));
  LAMELLA_HLO_REQUIRE(source.compatible(Shape::array(type, sizes)), i, "expected operand 1 to be ",
                      Shape::array(type, sizes).to_string(false), ", got ",
                      source.to_string(false));
  LAMELLA_HLO_REQUIRE(initial.compatible(Shape::scalar(type)), i,
                      "expected operand 2 to be a scalar of ", element_name(type), ", got ",
                      initial.to_string(false));
  std::vector<Shape> pair{Shape::scalar(type), Shape::scalar(type)};
  auto require = [&](AttributeKey key, ElementType result) {
    Computation& called = computation_of(i, key);
    require_parameters(i, called, pair);
    LAMELLA_HLO_REQUIRE(called.root->shape->compatible(Shape::scalar(result)), i, "expected '",
                        called.name, "' to give ", element_name(result), "[], got ",
                        called.root->shape->to_string(false));
  };
  require(AttributeKey::Select, ElementType::PRED);
  require(AttributeKey::Scatter, type);
  return operand;
}

Shape infer_sort(const Instruction& i) {
  LAMELLA_HLO_REQUIRE(!i.operands.empty(), i, "expected operands, got none");
  auto dimensions = i.integers(AttributeKey::Dimensions);
  const Shape& first = array_operand(i, 0);
  LAMELLA_HLO_REQUIRE(dimensions.size() == 1, i, "expected dimensions to name one dimension, got ",
                      braced(dimensions));
  require_dimensions(i, AttributeKey::Dimensions, dimensions, first.rank());
  std::vector<Shape> shapes, scalars;
  for (size_t n = 0; n < i.operands.size(); ++n) {
    const Shape& operand = array_operand(i, n);
    LAMELLA_HLO_REQUIRE(operand.same_dimensions(first), i,
                        "expected operands of the same dimensions, got ", first.to_string(false),
                        " and ", operand.to_string(false));
    shapes.push_back(operand);
    scalars.push_back(Shape::scalar(operand.element_type()));
    scalars.push_back(scalars.back());
  }
  Computation& comparator = computation_of(i, AttributeKey::ToApply);
  require_parameters(i, comparator, scalars);
  LAMELLA_HLO_REQUIRE(comparator.root->shape->compatible(Shape::scalar(ElementType::PRED)), i,
                      "expected '", comparator.name, "' to give pred[], got ",
                      comparator.root->shape->to_string(false));
  return shapes.size() == 1 ? shapes[0] : Shape::tuple(std::move(shapes));
}

Shape infer_map(const Instruction& i) {
  LAMELLA_HLO_REQUIRE(!i.operands.empty(), i, "expected operands, got none");
  const Shape& first = array_operand(i, 0);
  std::vector<Shape> scalars;
  for (size_t n = 0; n < i.operands.size(); ++n) {
    const Shape& operand = array_operand(i, n);
    LAMELLA_HLO_REQUIRE(operand.same_dimensions(first), i,
                        "expected operands of the same dimensions, got ", first.to_string(false),
                        " and ", operand.to_string(false));
    scalars.push_back(Shape::scalar(operand.element_type()));
  }
  Computation& mapped = computation_of(i, AttributeKey::ToApply);
  require_parameters(i, mapped, scalars);
  LAMELLA_HLO_REQUIRE(mapped.root->shape->is_scalar(), i, "expected '", mapped.name,
                      "' to give a scalar, got ", mapped.root->shape->to_string(false));
  return first.with_element_type(mapped.root->shape->element_type());
}

// Operands are the inputs, then the carries. The computation takes slices of the inputs, which lack
// the scanned dimension, and the carries; it returns slices of the outputs, and the carries.
Shape infer_scan(const Instruction& i) {
  auto dimensions = i.integers(AttributeKey::Dimensions);
  LAMELLA_HLO_REQUIRE(dimensions.size() == 1, i, "expected dimensions to name one dimension, got ",
                      braced(dimensions));
  LAMELLA_HLO_REQUIRE(i.has(AttributeKey::NumCarries), i,
                      "expected the attribute num_carries, got none");
  int64_t carries = i.integer(AttributeKey::NumCarries);
  auto operands = static_cast<int64_t>(i.operands.size());
  LAMELLA_HLO_REQUIRE(carries >= 0 && carries <= operands, i, "expected num_carries to be at most ",
                      operands, ", got ", carries);
  int64_t scanned = -1;
  std::vector<Shape> parameters;
  for (int64_t n = 0; n < operands; ++n) {
    const Shape& operand = array_operand(i, static_cast<size_t>(n));
    if (n >= operands - carries) {
      parameters.push_back(operand);
      continue;
    }
    require_dimensions(i, AttributeKey::Dimensions, dimensions, operand.rank());
    int64_t size = operand.dimension(dimensions[0]);
    if (scanned < 0) scanned = size;
    LAMELLA_HLO_REQUIRE(size == scanned, i, "expected dimension ", dimensions[0], " of operand ", n,
                        " to be ", scanned, ", got ", size);
    std::vector<int64_t> sizes = copy_of(operand.dimensions());
    sizes.erase(sizes.begin() + dimensions[0]);
    parameters.push_back(operand.with_dimensions(std::move(sizes)));
  }
  Computation& body = computation_of(i, AttributeKey::ToApply);
  require_parameters(i, body, parameters);
  const Shape& given = *body.root->shape;
  std::vector<Shape> parts = given.is_tuple() ? given.tuple_shapes() : std::vector<Shape>{given};
  const Shape& stated = *i.shape;
  size_t expected = stated.is_tuple() ? stated.tuple_shapes().size() : 1;
  LAMELLA_HLO_REQUIRE(parts.size() == expected && parts.size() >= static_cast<size_t>(carries), i,
                      "expected '", body.name, "' to give ", expected, " arrays, ", carries,
                      " of them carries, got ", given.to_string(false));
  size_t outputs = parts.size() - static_cast<size_t>(carries);
  if (scanned < 0) {  // without inputs the outputs give the scanned size
    const Shape& first = stated.is_tuple() && outputs > 0 ? stated.tuple_shapes()[0] : stated;
    LAMELLA_HLO_REQUIRE(
        outputs > 0 && first.is_array() && dimensions[0] >= 0 && dimensions[0] < first.rank(), i,
        "expected an input or an output with dimension ", dimensions[0]);
    scanned = first.dimension(dimensions[0]);
  }
  for (size_t n = 0; n < parts.size(); ++n) {
    LAMELLA_HLO_REQUIRE(parts[n].is_array(), i, "expected '", body.name, "' to give arrays, got ",
                        given.to_string(false));
    if (n >= outputs) {
      const Shape& carry =
          i.operand_shape(i.operands.size() - static_cast<size_t>(carries) + n - outputs);
      LAMELLA_HLO_REQUIRE(parts[n].compatible(carry), i, "expected '", body.name, "' to give ",
                          carry.to_string(false), " as carry ", n - outputs, ", got ",
                          parts[n].to_string(false));
      continue;
    }
    std::vector<int64_t> sizes = copy_of(parts[n].dimensions());
    require_dimensions(i, AttributeKey::Dimensions, dimensions, parts[n].rank() + 1);
    sizes.insert(sizes.begin() + dimensions[0], scanned);
    parts[n] = parts[n].with_dimensions(std::move(sizes));
  }
  return stated.is_tuple() ? Shape::tuple(std::move(parts)) : parts[0];
}

Shape infer_top_k(const Instruction& i) {
  const Shape& operand = array_operand(i, 0);
  int64_t k = i.integer(AttributeKey::K, -1);
  LAMELLA_HLO_REQUIRE(operand.rank() >= 1 && k >= 0 && k <= operand.dimension(operand.rank() - 1),
                      i, "expected k to be at most the last dimension of ",
                      operand.to_string(false), ", got ", k);
  std::vector<int64_t> sizes = copy_of(operand.dimensions());
  sizes.back() = k;
  return Shape::tuple({operand.with_dimensions(sizes), Shape::array(ElementType::S32, sizes)});
}

Shape infer_batch_norm(const Instruction& i) {
  const Shape& operand = array_operand(i, 0);
  int64_t feature = i.integer(AttributeKey::FeatureIndex, -1);
  LAMELLA_HLO_REQUIRE(feature >= 0 && feature < operand.rank(), i,
                      "expected feature_index to be below ", operand.rank(), ", got ", feature);
  LAMELLA_HLO_REQUIRE(is_floating(operand.element_type()), i,
                      "expected floating-point numbers, got ", operand.to_string(false));
  Shape per_feature = Shape::array(operand.element_type(), {operand.dimension(feature)});
  bool grad = i.opcode == Opcode::BatchNormGrad;
  for (size_t n = 1; n < i.operands.size(); ++n) {
    const Shape& expected = grad && n == 4 ? operand : per_feature;
    LAMELLA_HLO_REQUIRE(i.operand_shape(n).compatible(expected), i, "expected operand ", n,
                        " to be ", expected.to_string(false), ", got ",
                        i.operand_shape(n).to_string(false));
  }
  if (i.opcode == Opcode::BatchNormInference) return operand;
  return Shape::tuple({operand, per_feature, per_feature});
}

}  // namespace lamella::hlo
