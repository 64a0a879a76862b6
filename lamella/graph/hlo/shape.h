// Shape: the type of an HLO value. It is an array (element type, sizes and layout), a tuple of
// shapes, a token, or opaque.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/graph/hlo/element_type.h"

namespace lamella::hlo {

// Note [Bounds of shapes]
//   Constructors check these bounds, so code may multiply any of a shape's sizes without overflow
//   and may recurse into its tuples. A size of 0 counts as 1 in the product, because strides of the
//   other dimensions of an empty array are computed as well. bytes() saturates at INT64_MAX, which
//   no allocation satisfies.
constexpr int64_t kMostElements = int64_t{1} << 60;
constexpr int64_t kMostDimensions = 64;
constexpr int kMostNestedTuples = 100;
constexpr int64_t kMostLeaves = int64_t{1} << 20;  // arrays and tokens in a tuple, at all levels

// Note [Layouts]
//   A layout lists an array's dimensions from the fastest varying in memory to the slowest: {1,0}
//   is row-major for two dimensions. Layouts take effect only for the parameters and results of a
//   program and of custom calls. Tiles and memory spaces in a text are kept as written.
class Shape {
 public:
  Shape() = default;
  // Row-major unless `minor_to_major` is given. Throws if a size is negative, or the sizes exceed
  // the bounds of shapes.
  static Shape array(ElementType type, std::vector<int64_t> dimensions);
  static Shape array(ElementType type, std::vector<int64_t> dimensions,
                     std::vector<int64_t> minor_to_major);
  static Shape scalar(ElementType type) { return array(type, {}); }
  static Shape tuple(std::vector<Shape> elements);
  static Shape buffer(Shape array);
  static Shape token();
  static Shape opaque();
  // Reads "f32[2,3]{1,0}", "(f32[], token[])". The whole text must be one shape; throws.
  static Shape parse(std::string_view text);

  ElementType element_type() const { return type_; }
  bool is_valid() const { return type_ != ElementType::Invalid; }
  bool is_tuple() const { return type_ == ElementType::TUPLE; }
  bool is_token() const { return type_ == ElementType::TOKEN; }
  bool is_array() const { return is_array_type(type_); }
  bool is_scalar() const { return is_array() && dimensions_.empty(); }

  // The number of dimensions of an array.
  int64_t rank() const { return static_cast<int64_t>(dimensions_.size()); }
  std::span<const int64_t> dimensions() const { return dimensions_; }
  int64_t dimension(int64_t i) const { return dimensions_[static_cast<size_t>(i)]; }
  bool is_dynamic(int64_t i) const {
    return i < static_cast<int64_t>(dynamic_.size()) && dynamic_[static_cast<size_t>(i)];
  }
  // Whether the size of a dimension has no bound: "?", of size 0 here.
  bool is_unbounded(int64_t i) const {
    return i < static_cast<int64_t>(unbounded_.size()) && unbounded_[static_cast<size_t>(i)];
  }
  // Whether it is the handle of a buffer, "b(f32[2])": a tuple of its array here.
  bool is_buffer() const { return is_buffer_; }
  // Whether it is a buffer, has a dimension without a bound, or is a tuple with such an element.
  // Programs with such shapes are read, printed and drawn, but cannot run.
  bool is_abstract() const;
  bool has_layout() const { return has_layout_; }
  std::span<const int64_t> minor_to_major() const { return minor_to_major_; }
  // Row-major, or no layout at all.
  bool is_row_major() const;
  // The number of elements of an array: 1 for a scalar, 0 for tuples and tokens.
  int64_t elements() const;
  // The bytes of an array in memory, or of all arrays of a tuple; saturates at INT64_MAX.
  int64_t bytes() const;

  // The shapes of the elements of a tuple.
  const std::vector<Shape>& tuple_shapes() const { return elements_; }

  Shape with_element_type(ElementType type) const;
  Shape with_dimensions(std::vector<int64_t> dimensions) const { return array(type_, dimensions); }
  Shape with_default_layout() const;
  void set_layout(std::vector<int64_t> minor_to_major, std::string suffix = {});
  void clear_layout();
  void set_dynamic(int64_t dimension);
  void set_unbounded(int64_t dimension);

  // True if types and sizes are equal; layouts may differ.
  bool compatible(const Shape& other) const;
  // True if sizes are equal; element types and layouts may differ.
  bool same_dimensions(const Shape& other) const {
    return is_array() && other.is_array() && dimensions_ == other.dimensions_;
  }
  bool operator==(const Shape& other) const;

  // Accessors under XLA's names. They throw if the dimension or element does not exist.
  int64_t dimensions(int64_t i) const;
  int dimensions_size() const { return static_cast<int>(dimensions_.size()); }
  const Shape& tuple_shapes(int64_t i) const;
  int tuple_shapes_size() const { return static_cast<int>(elements_.size()); }
  bool IsArray() const { return is_array(); }
  bool IsTuple() const { return is_tuple(); }
  bool IsToken() const { return is_token(); }
  bool IsOpaque() const { return type_ == ElementType::OPAQUE_TYPE; }
  bool is_dynamic_dimension(int64_t i) const { return is_dynamic(i); }
  bool is_static() const;
  std::string ToString(bool print_layout = false) const { return to_string(print_layout); }

  // "f32[2,3]{1,0}"; a scalar's empty layout is not printed.
  std::string to_string(bool with_layout = true) const;
  void append_to(std::string* text, bool with_layout) const;

 private:
  ElementType type_ = ElementType::Invalid;
  bool has_layout_ = false;
  bool is_buffer_ = false;
  std::vector<int64_t> dimensions_;
  std::vector<int64_t> minor_to_major_;
  std::vector<bool> dynamic_;    // empty if no dimension is dynamic
  std::vector<bool> unbounded_;  // empty if every dimension has a size or a bound
  std::string layout_suffix_;    // the text after the dimensions of a layout: ":T(8,128)"
  std::vector<Shape> elements_;
  int depth_ = 0;  // levels of nested tuples
  int64_t leaves_ = 1;
};

// Calls visit(index) for each index below `sizes`, in row-major order.
template <class F>
void for_each_index(std::span<const int64_t> sizes, F&& visit) {
  int64_t left = 1;
  for (int64_t size : sizes) left *= size;
  std::vector<int64_t> index(sizes.size());
  for (; left > 0; --left) {
    visit(std::span<const int64_t>(index));
    for (size_t d = sizes.size(); d-- > 0 && ++index[d] == sizes[d];) index[d] = 0;
  }
}

// {n-1, ..., 1, 0}.
std::vector<int64_t> row_major(int64_t rank);
// "{1,0}".
std::string braced(std::span<const int64_t> numbers);

}  // namespace lamella::hlo
