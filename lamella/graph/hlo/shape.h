// Shape: what a value of HLO is: an array of an element type with sizes and a layout, a tuple of
// shapes, a token.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/graph/hlo/element_type.h"

namespace lamella::hlo {

// Note [Bounds of shapes]
//   Every shape keeps within these bounds from the moment it is made, so that whoever has one may
//   multiply its sizes, or those of some of its dimensions, by each other, and may go down into its
//   tuples by recursion. Sizes of 0 count as 1 for it: the other dimensions of an empty array have
//   strides as well. bytes() stops at INT64_MAX, which no allocator gives.
constexpr int64_t kMostElements = int64_t{1} << 60;
constexpr int64_t kMostDimensions = 64;
constexpr int kMostNestedTuples = 100;
constexpr int64_t kMostLeaves = int64_t{1} << 20;  // arrays and tokens of one tuple, all levels

// Note [Layouts]
//   A layout lists an array's dimensions from the one whose neighbours lie next to each other in
//   memory to the slowest: {1,0} is row-major for two dimensions. It is printed, compared where
//   asked for, and honoured at the edges of a program and of custom calls. What a text says of
//   tiles or memory spaces is kept as it was written.
class Shape {
 public:
  Shape() = default;
  // Row-major unless `minor_to_major` says otherwise. Sizes must not be negative, and keep within
  // the bounds of shapes; throws.
  static Shape array(ElementType type, std::vector<int64_t> dimensions);
  static Shape array(ElementType type, std::vector<int64_t> dimensions,
                     std::vector<int64_t> minor_to_major);
  static Shape scalar(ElementType type) { return array(type, {}); }
  static Shape tuple(std::vector<Shape> elements);
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
  bool has_layout() const { return has_layout_; }
  std::span<const int64_t> minor_to_major() const { return minor_to_major_; }
  // Row-major, or no layout at all.
  bool is_row_major() const;
  // Elements of an array; 1 for a scalar, 0 for what is no array.
  int64_t elements() const;
  // The bytes of an array as it lies in memory, or of a tuple's leaves; INT64_MAX if there are
  // more.
  int64_t bytes() const;

  // The shapes of the elements of a tuple.
  const std::vector<Shape>& tuple_shapes() const { return elements_; }

  Shape with_element_type(ElementType type) const;
  Shape with_dimensions(std::vector<int64_t> dimensions) const { return array(type_, dimensions); }
  Shape with_default_layout() const;
  void set_layout(std::vector<int64_t> minor_to_major, std::string suffix = {});
  void clear_layout();
  void set_dynamic(int64_t dimension);

  // Same types and sizes, whatever the layouts.
  bool compatible(const Shape& other) const;
  // Same sizes, whatever the element types and layouts.
  bool same_dimensions(const Shape& other) const {
    return is_array() && other.is_array() && dimensions_ == other.dimensions_;
  }
  bool operator==(const Shape& other) const;

  // The same under XLA's names. Throw where there is no such dimension or element.
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
  std::vector<int64_t> dimensions_;
  std::vector<int64_t> minor_to_major_;
  std::vector<bool> dynamic_;  // empty: none is
  std::string layout_suffix_;  // what follows the dimensions of a layout: ":T(8,128)"
  std::vector<Shape> elements_;
  int depth_ = 0;  // tuples within each other
  int64_t leaves_ = 1;
};

// {n-1, ..., 1, 0}.
std::vector<int64_t> row_major(int64_t rank);
// "{1,0}".
std::string braced(std::span<const int64_t> numbers);

}  // namespace lamella::hlo
