// Functions that make and query shapes.
#include "lamella/graph/builder/shape_util.h"

#include <algorithm>

#include "lamella/core/error.h"

namespace lamella::hlo {
namespace {

std::vector<int64_t> list(std::span<const int64_t> numbers) {
  return {numbers.begin(), numbers.end()};
}
void visit_parts(const Shape& shape, ShapeIndex* index,
                 const std::function<void(const Shape&, const ShapeIndex&)>& visit) {
  visit(shape, *index);
  for (size_t i = 0; i < shape.tuple_shapes().size(); ++i) {
    index->push_back(static_cast<int64_t>(i));
    visit_parts(shape.tuple_shapes()[i], index, visit);
    index->pop_back();
  }
}

}  // namespace

// ---- Layouts ------------------------------------------------------------------------------------

Layout LayoutUtil::MakeLayoutFromMajorToMinor(Span<int64_t> major_to_minor) {
  std::vector<int64_t> order(major_to_minor.begin(), major_to_minor.end());
  std::reverse(order.begin(), order.end());
  return Layout(order);
}
Layout LayoutUtil::MakeAscendingLayout(int64_t rank) {
  std::vector<int64_t> order = row_major(rank);
  std::reverse(order.begin(), order.end());
  return Layout(order);
}
void LayoutUtil::ClearLayout(Shape* shape) {
  if (!shape->is_tuple()) return shape->clear_layout();
  std::vector<Shape> elements = shape->tuple_shapes();
  for (Shape& element : elements) ClearLayout(&element);
  *shape = Shape::tuple(std::move(elements));
}
bool LayoutUtil::HasLayout(const Shape& shape) {
  return std::all_of(shape.tuple_shapes().begin(), shape.tuple_shapes().end(), HasLayout) &&
         (!shape.is_array() || shape.has_layout());
}
bool LayoutUtil::IsMonotonicWithDim0Major(const Layout& layout) {
  return std::is_sorted(layout.minor_to_major().rbegin(), layout.minor_to_major().rend());
}
bool LayoutUtil::IsMonotonicWithDim0Minor(const Layout& layout) {
  return std::is_sorted(layout.minor_to_major().begin(), layout.minor_to_major().end());
}
int64_t LayoutUtil::Major(const Layout& layout, int64_t place) {
  return Minor(layout, layout.minor_to_major_size() - 1 - place);
}
int64_t LayoutUtil::Minor(const Layout& layout, int64_t place) {
  LAMELLA_CHECK(place >= 0 && place < layout.minor_to_major_size(),
                "LayoutUtil: expected a place below ", layout.minor_to_major_size(), ", got ",
                place);
  return layout.minor_to_major(static_cast<int>(place));
}
std::vector<int64_t> LayoutUtil::MakeLogicalToPhysical(const Layout& layout) {
  auto rank = static_cast<int64_t>(layout.minor_to_major().size());
  std::vector<int64_t> physical(static_cast<size_t>(rank));
  for (int64_t place = 0; place < rank; ++place) {
    physical.at(static_cast<size_t>(Major(layout, place))) = place;
  }
  return physical;
}
bool LayoutUtil::LayoutsInShapesEqual(const Shape& a, const Shape& b) {
  if (a.tuple_shapes().size() != b.tuple_shapes().size()) return false;
  for (size_t i = 0; i < a.tuple_shapes().size(); ++i) {
    if (!LayoutsInShapesEqual(a.tuple_shapes()[i], b.tuple_shapes()[i])) return false;
  }
  return a.has_layout() == b.has_layout() &&
         std::ranges::equal(a.minor_to_major(), b.minor_to_major());
}

// ---- Making shapes ------------------------------------------------------------------------------

Shape ShapeUtil::MakeShape(PrimitiveType type, Span<int64_t> dimensions) {
  if (type == ElementType::TOKEN || type == ElementType::OPAQUE_TYPE) {
    LAMELLA_CHECK(dimensions.empty(), "MakeShape: expected no dimensions for ", element_name(type),
                  ", got ", braced(dimensions));
    return type == ElementType::TOKEN ? Shape::token() : Shape::opaque();
  }
  return Shape::array(type, list(dimensions));
}
Shape ShapeUtil::MakeShape(PrimitiveType type, Span<int64_t> dimensions,
                           const std::vector<bool>& dynamic_dimensions) {
  LAMELLA_CHECK(dynamic_dimensions.size() == dimensions.size(),
                "MakeShape: expected 'dynamic_dimensions' for ", dimensions.size(),
                " dimensions, got ", dynamic_dimensions.size());
  Shape shape = MakeShape(type, dimensions);
  for (size_t d = 0; d < dynamic_dimensions.size(); ++d) {
    if (dynamic_dimensions[d]) shape.set_dynamic(static_cast<int64_t>(d));
  }
  return shape;
}
Shape ShapeUtil::MakeShapeWithLayout(PrimitiveType type, Span<int64_t> dimensions,
                                     Span<int64_t> minor_to_major) {
  return Shape::array(type, list(dimensions), list(minor_to_major));
}
StatusOr<Shape> ShapeUtil::MakeValidatedShape(PrimitiveType type, Span<int64_t> dimensions) {
  return status_of([&] { return MakeShape(type, dimensions); });
}
Shape ShapeUtil::MakeTupleShapeWithPtrs(Span<const Shape*> shapes) {
  std::vector<Shape> elements;
  for (const Shape* shape : shapes) elements.push_back(*shape);
  return Shape::tuple(std::move(elements));
}
Shape ShapeUtil::ChangeElementType(const Shape& shape, PrimitiveType type) {
  if (!shape.is_tuple()) return shape.is_array() ? shape.with_element_type(type) : shape;
  std::vector<Shape> elements;
  for (const Shape& element : shape.tuple_shapes()) {
    elements.push_back(ChangeElementType(element, type));
  }
  return Shape::tuple(std::move(elements));
}
void ShapeUtil::AppendShapeToTuple(const Shape& shape, Shape* tuple_shape) {
  std::vector<Shape> elements = tuple_shape->tuple_shapes();
  elements.push_back(shape);
  *tuple_shape = Shape::tuple(std::move(elements));
}
void ShapeUtil::AppendMajorDimension(int bound, Shape* shape) {
  std::vector<int64_t> sizes = list(shape->dimensions()), order = list(shape->minor_to_major());
  order.push_back(static_cast<int64_t>(sizes.size()));
  sizes.push_back(bound);
  *shape = Shape::array(shape->element_type(), std::move(sizes), std::move(order));
}
Shape ShapeUtil::PrependMajorDimension(int64_t bound, Shape shape) {
  std::vector<int64_t> sizes = list(shape.dimensions()), order = list(shape.minor_to_major());
  sizes.insert(sizes.begin(), bound);
  for (int64_t& d : order) ++d;
  order.push_back(0);
  return Shape::array(shape.element_type(), std::move(sizes), std::move(order));
}
Shape ShapeUtil::DeleteDimension(int64_t dimension, const Shape& shape) {
  LAMELLA_CHECK(dimension >= 0 && dimension < shape.rank(),
                "DeleteDimension: expected a dimension of ", shape.to_string(false), ", got ",
                dimension);
  return FilterDimensions([&](int64_t d) { return d != dimension; }, shape);
}
Shape ShapeUtil::FilterDimensions(const std::function<bool(int64_t)>& keep, const Shape& shape) {
  std::vector<int64_t> sizes, order, renamed(static_cast<size_t>(shape.rank()), -1);
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (!keep(d)) continue;
    renamed[static_cast<size_t>(d)] = static_cast<int64_t>(sizes.size());
    sizes.push_back(shape.dimension(d));
  }
  for (int64_t d : shape.minor_to_major()) {
    int64_t now = renamed[static_cast<size_t>(d)];
    if (now >= 0) order.push_back(now);
  }
  Shape made = Shape::array(shape.element_type(), std::move(sizes));
  if (shape.has_layout()) made.set_layout(std::move(order));
  for (int64_t d = 0; d < shape.rank(); ++d) {
    int64_t now = renamed[static_cast<size_t>(d)];
    if (now >= 0 && shape.is_dynamic(d)) made.set_dynamic(now);
  }
  return made;
}
Shape ShapeUtil::DropDegenerateDimensions(const Shape& shape) {
  return FilterDimensions([&](int64_t d) { return shape.dimension(d) != 1; }, shape);
}
Shape ShapeUtil::PermuteDimensions(Span<int64_t> permutation, const Shape& shape) {
  std::vector<int64_t> sorted = list(permutation), sizes, order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t d = 0; d < sorted.size(); ++d) {
    LAMELLA_CHECK(
        sorted.size() == shape.dimensions().size() && sorted[d] == static_cast<int64_t>(d),
        "PermuteDimensions: expected each dimension of ", shape.to_string(false), " once, got ",
        braced(permutation));
  }
  for (int64_t d : permutation) sizes.push_back(shape.dimension(d));
  for (int64_t d : shape.minor_to_major()) {
    order.push_back(std::find(permutation.begin(), permutation.end(), d) - permutation.begin());
  }
  Shape made = Shape::array(shape.element_type(), std::move(sizes));
  if (shape.has_layout()) made.set_layout(std::move(order));
  return made;
}

// ---- Querying shapes ----------------------------------------------------------------------------

int64_t ShapeUtil::ByteSizeOf(const Shape& shape, int64_t pointer_size) {
  if (shape.is_tuple()) return ByteSizeOfTupleIndexTable(shape, pointer_size);
  return shape.bytes();
}
int64_t ShapeUtil::ByteSizeOfTupleIndexTable(const Shape& shape, int64_t pointer_size) {
  return TupleElementCount(shape) * pointer_size;
}
int64_t ShapeUtil::TrueNumDimensions(const Shape& shape) {
  return std::ranges::count_if(shape.dimensions(), [](int64_t size) { return size != 1; });
}
bool ShapeUtil::CompatibleIgnoringElementType(const Shape& a, const Shape& b) {
  if (a.tuple_shapes().size() != b.tuple_shapes().size()) return false;
  for (size_t i = 0; i < a.tuple_shapes().size(); ++i) {
    if (!CompatibleIgnoringElementType(a.tuple_shapes()[i], b.tuple_shapes()[i])) return false;
  }
  if (a.is_array() && b.is_array()) return a.same_dimensions(b);
  return a.element_type() == b.element_type();
}
bool ShapeUtil::IsNestedTuple(const Shape& shape) {
  return std::ranges::any_of(shape.tuple_shapes(), [](const Shape& one) { return one.is_tuple(); });
}
const Shape& ShapeUtil::GetTupleElementShape(const Shape& shape, int64_t index) {
  return GetSubshape(shape, {index});
}
int64_t ShapeUtil::GetDimensionNumber(const Shape& shape, int64_t dimension) {
  int64_t d = dimension < 0 ? dimension + shape.rank() : dimension;
  LAMELLA_CHECK(d >= 0 && d < shape.rank(), "GetDimensionNumber: expected a dimension of ",
                shape.to_string(false), ", got ", dimension);
  return d;
}
int64_t ShapeUtil::GetDimension(const Shape& shape, int64_t dimension) {
  return shape.dimension(GetDimensionNumber(shape, dimension));
}
bool ShapeUtil::ElementIsSigned(const Shape& shape) {
  ElementKind kind = element_kind(shape.element_type());
  return kind == ElementKind::Signed || kind == ElementKind::Float || kind == ElementKind::Complex;
}
Status ShapeUtil::ValidateShape(const Shape& shape) {
  if (!shape.is_valid()) {
    return {StatusCode::kInvalidArgument,
            "ValidateShape: expected a shape that is set, got invalid"};
  }
  for (const Shape& element : shape.tuple_shapes()) {
    if (Status status = ValidateShape(element); !status.ok()) return status;
  }
  return {};
}

StatusOr<const Shape*> ShapeUtil::TryGetSubshape(const Shape& shape, const ShapeIndex& index) {
  const Shape* part = &shape;
  for (int64_t n : index) {
    if (n < 0 || static_cast<size_t>(n) >= part->tuple_shapes().size()) {
      return Status(
          StatusCode::kInvalidArgument,
          str("GetSubshape: expected a part of ", shape.to_string(false), ", got ", braced(index)));
    }
    part = &part->tuple_shapes()[static_cast<size_t>(n)];
  }
  return part;
}
const Shape& ShapeUtil::GetSubshape(const Shape& shape, const ShapeIndex& index) {
  return *TryGetSubshape(shape, index).value();
}
bool ShapeUtil::IndexIsValid(const Shape& shape, const ShapeIndex& index) {
  return TryGetSubshape(shape, index).ok();
}
bool ShapeUtil::IsLeafIndex(const Shape& shape, const ShapeIndex& index) {
  return !GetSubshape(shape, index).is_tuple();
}
void ShapeUtil::ForEachSubshape(const Shape& shape,
                                const std::function<void(const Shape&, const ShapeIndex&)>& visit) {
  ShapeIndex index;
  visit_parts(shape, &index, visit);
}
int64_t ShapeUtil::SubshapeCount(const Shape& shape) {
  int64_t count = 0;
  ForEachSubshape(shape, [&](const Shape&, const ShapeIndex&) { ++count; });
  return count;
}
std::vector<std::pair<ShapeIndex, Shape>> ShapeUtil::GetLeafShapes(const Shape& shape) {
  std::vector<std::pair<ShapeIndex, Shape>> leaves;
  ForEachSubshape(shape, [&](const Shape& part, const ShapeIndex& index) {
    if (!part.is_tuple()) leaves.emplace_back(index, part);
  });
  return leaves;
}
int64_t ShapeUtil::GetLeafCount(const Shape& shape) {
  return static_cast<int64_t>(GetLeafShapes(shape).size());
}

StatusOr<Shape> ParseShape(std::string_view text) {
  try {
    return Shape::parse(text);
  } catch (const Error& error) {
    return Status(StatusCode::kInvalidArgument, error.what());
  }
}

}  // namespace lamella::hlo
