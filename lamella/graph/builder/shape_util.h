// ShapeUtil and LayoutUtil: functions that make and query shapes (names are XLA's).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "lamella/graph/builder/op.h"
#include "lamella/graph/builder/program_shape.h"
#include "lamella/graph/builder/status.h"
#include "lamella/graph/builder/types.h"
#include "lamella/graph/hlo/shape.h"

namespace lamella::hlo {

// The dimensions from the fastest varying to the slowest in memory.
class Layout {
 public:
  Layout() = default;
  explicit Layout(Span<int64_t> minor_to_major)
      : minor_to_major_(minor_to_major.begin(), minor_to_major.end()) {}
  const std::vector<int64_t>& minor_to_major() const { return minor_to_major_; }
  int64_t minor_to_major(int i) const { return minor_to_major_.at(static_cast<size_t>(i)); }
  int minor_to_major_size() const { return static_cast<int>(minor_to_major_.size()); }
  // "{1,0}".
  std::string ToString() const { return braced(minor_to_major_); }
  bool operator==(const Layout& other) const = default;

 private:
  std::vector<int64_t> minor_to_major_;
};

class LayoutUtil {
 public:
  LayoutUtil() = delete;
  static Layout MakeLayout(Span<int64_t> minor_to_major) { return Layout(minor_to_major); }
  static Layout MakeLayoutFromMajorToMinor(Span<int64_t> major_to_minor);
  // Row-major.
  static Layout MakeDescendingLayout(int64_t rank) { return Layout(row_major(rank)); }
  // Column-major.
  static Layout MakeAscendingLayout(int64_t rank);
  static Layout GetDefaultLayoutForShape(const Shape& shape) {
    return MakeDescendingLayout(shape.rank());
  }
  static Layout GetDefaultLayoutForRank(int64_t rank) { return MakeDescendingLayout(rank); }
  // Makes the layouts of all arrays of the shape row-major.
  static void SetToDefaultLayout(Shape* shape) { *shape = shape->with_default_layout(); }
  static Shape GetWithDefaultLayout(const Shape& shape) { return shape.with_default_layout(); }
  static void ClearLayout(Shape* shape);
  // True if all arrays of the shape have a layout.
  static bool HasLayout(const Shape& shape);
  static bool IsMonotonicWithDim0Major(const Layout& layout);
  static bool IsMonotonicWithDim0Minor(const Layout& layout);
  // The dimension at a position, counted from the slowest (Major) or from the fastest (Minor).
  static int64_t Major(const Layout& layout, int64_t place);
  static int64_t Minor(const Layout& layout, int64_t place);
  static std::vector<int64_t> MakeLogicalToPhysical(const Layout& layout);
  static bool Equal(const Layout& a, const Layout& b) { return a == b; }
  static bool LayoutsInShapesEqual(const Shape& a, const Shape& b);
  static std::string HumanString(const Layout& layout) { return layout.ToString(); }
};

class ShapeUtil {
 public:
  ShapeUtil() = delete;

  // Makes row-major shapes; throws for negative sizes and types that arrays cannot have.
  static Shape MakeShape(PrimitiveType type, Span<int64_t> dimensions);
  static Shape MakeShape(PrimitiveType type, Span<int64_t> dimensions,
                         const std::vector<bool>& dynamic_dimensions);
  static Shape MakeScalarShape(PrimitiveType type) { return MakeShape(type, {}); }
  static Shape MakeShapeWithLayout(PrimitiveType type, Span<int64_t> dimensions,
                                   Span<int64_t> minor_to_major);
  static Shape MakeShapeWithDenseLayout(PrimitiveType type, Span<int64_t> dimensions,
                                        Span<int64_t> minor_to_major) {
    return MakeShapeWithLayout(type, dimensions, minor_to_major);
  }
  static Shape MakeShapeWithDescendingLayout(PrimitiveType type, Span<int64_t> dimensions) {
    return MakeShape(type, dimensions);
  }
  static StatusOr<Shape> MakeValidatedShape(PrimitiveType type, Span<int64_t> dimensions);
  static Shape MakeTupleShape(Span<Shape> shapes) {
    return Shape::tuple({shapes.begin(), shapes.end()});
  }
  static Shape MakeTuple(Span<Shape> shapes) { return MakeTupleShape(shapes); }
  // A tuple, or the shape itself if there is only one.
  static Shape MakeMaybeTupleShape(Span<Shape> shapes) {
    return shapes.size() == 1 ? shapes[0] : MakeTupleShape(shapes);
  }
  static Shape MakeTupleShapeWithPtrs(Span<const Shape*> shapes);
  static Shape MakeNil() { return Shape::tuple({}); }
  static Shape MakeTokenShape() { return Shape::token(); }
  static Shape MakeOpaqueShape() { return Shape::opaque(); }
  static Shape ChangeElementType(const Shape& shape, PrimitiveType type);
  static void AppendShapeToTuple(const Shape& shape, Shape* tuple_shape);
  static void AppendMajorDimension(int bound, Shape* shape);
  static Shape PrependMajorDimension(int64_t bound, Shape shape);
  static Shape DeleteDimension(int64_t dimension, const Shape& shape);
  static Shape PermuteDimensions(Span<int64_t> permutation, const Shape& shape);
  static Shape FilterDimensions(const std::function<bool(int64_t)>& keep, const Shape& shape);
  static Shape DropDegenerateDimensions(const Shape& shape);

  static int64_t ElementsIn(const Shape& shape) { return shape.elements(); }
  static bool IsZeroElementArray(const Shape& shape) {
    return shape.is_array() && shape.elements() == 0;
  }
  // The bytes of an array; for a tuple, the bytes of its table of pointers only.
  static int64_t ByteSizeOf(const Shape& shape, int64_t pointer_size = sizeof(void*));
  static int64_t ByteSizeOfElements(const Shape& shape) { return shape.bytes(); }
  static int64_t ByteSizeOfPrimitiveType(PrimitiveType type) { return element_bytes(type); }
  static int64_t ByteSizeOfTupleIndexTable(const Shape& shape, int64_t pointer_size);
  static int64_t TrueNumDimensions(const Shape& shape);

  static std::string HumanString(const Shape& shape) { return shape.to_string(false); }
  static std::string HumanStringWithLayout(const Shape& shape) { return shape.to_string(true); }
  static std::string HumanString(const ProgramShape& shape) { return shape.ToString(); }

  // Same types and sizes whatever the layouts; the same layouts as well; sizes alone.
  static bool Compatible(const Shape& a, const Shape& b) { return a.compatible(b); }
  static bool Equal(const Shape& a, const Shape& b) { return a == b; }
  static bool SameDimensions(const Shape& a, const Shape& b) { return a.same_dimensions(b); }
  static bool SameElementType(const Shape& a, const Shape& b) {
    return a.element_type() == b.element_type();
  }
  static bool CompatibleIgnoringElementType(const Shape& a, const Shape& b);
  static bool CompatibleIgnoringLayout(const Shape& a, const Shape& b) { return a.compatible(b); }

  static bool IsScalar(const Shape& shape) { return shape.is_scalar(); }
  static bool IsEffectiveScalar(const Shape& shape) {
    return shape.is_array() && TrueNumDimensions(shape) == 0;
  }
  static bool IsScalarWithElementType(const Shape& shape, PrimitiveType type) {
    return shape.is_scalar() && shape.element_type() == type;
  }
  static bool IsTuple(const Shape& shape) { return shape.is_tuple(); }
  static bool IsArray(const Shape& shape) { return shape.is_array(); }
  static bool IsNestedTuple(const Shape& shape);
  static bool IsEmptyTuple(const Shape& shape) {
    return shape.is_tuple() && shape.tuple_shapes().empty();
  }
  static bool IsNil(const Shape& shape) { return IsEmptyTuple(shape); }
  static int64_t Rank(const Shape& shape) { return shape.rank(); }
  static int64_t TupleElementCount(const Shape& shape) {
    return static_cast<int64_t>(shape.tuple_shapes().size());
  }
  static const Shape& GetTupleElementShape(const Shape& shape, int64_t index);
  // Negative dimensions count from the end.
  static int64_t GetDimension(const Shape& shape, int64_t dimension);
  static int64_t GetDimensionNumber(const Shape& shape, int64_t dimension);
  static bool ElementIsIntegral(const Shape& shape) { return is_integral(shape.element_type()); }
  static bool ElementIsFloating(const Shape& shape) { return is_floating(shape.element_type()); }
  static bool ElementIsComplex(const Shape& shape) { return is_complex(shape.element_type()); }
  static bool ElementIsSigned(const Shape& shape);
  static Status ValidateShape(const Shape& shape);

  // An element of nested tuples; GetSubshape throws if it does not exist.
  static const Shape& GetSubshape(const Shape& shape, const ShapeIndex& index);
  static StatusOr<const Shape*> TryGetSubshape(const Shape& shape, const ShapeIndex& index);
  static bool IndexIsValid(const Shape& shape, const ShapeIndex& index);
  static bool IsLeafIndex(const Shape& shape, const ShapeIndex& index);
  static int64_t GetLeafCount(const Shape& shape);
  // Visits the shape and its elements in preorder.
  static void ForEachSubshape(const Shape& shape,
                              const std::function<void(const Shape&, const ShapeIndex&)>& visit);
  static int64_t SubshapeCount(const Shape& shape);
  // The arrays and tokens of the shape, with their indices.
  static std::vector<std::pair<ShapeIndex, Shape>> GetLeafShapes(const Shape& shape);
};

// Reads "f32[2,3]{1,0}".
StatusOr<Shape> ParseShape(std::string_view text);

}  // namespace lamella::hlo
