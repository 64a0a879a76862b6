// Shapes: making, comparing, printing and reading them.
#include "lamella/graph/hlo/shape.h"

#include <algorithm>

#include "lamella/core/error.h"
#include "lamella/graph/hlo/shape_scanner.h"

namespace lamella::hlo {
namespace {

bool is_permutation_of_dims(std::span<const int64_t> order, int64_t rank) {
  if (static_cast<int64_t>(order.size()) != rank) return false;
  std::vector<bool> seen(order.size());
  for (int64_t d : order) {
    if (d < 0 || d >= rank || seen[static_cast<size_t>(d)]) return false;
    seen[static_cast<size_t>(d)] = true;
  }
  return true;
}

// The error message if the sizes, none of them negative, exceed the bounds of shapes; otherwise "".
std::string beyond_bounds(std::span<const int64_t> sizes) {
  if (static_cast<int64_t>(sizes.size()) > kMostDimensions) {
    return str("expected at most ", kMostDimensions, " dimensions, got ", sizes.size());
  }
  int64_t count = 1;
  for (int64_t size : sizes) {
    bool overflows = __builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count);
    if (overflows || count > kMostElements) {
      return str("expected at most 2^60 elements, got ", braced(sizes));
    }
  }
  return "";
}

}  // namespace

std::vector<int64_t> row_major(int64_t rank) {
  std::vector<int64_t> order(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i) order[static_cast<size_t>(i)] = rank - 1 - i;
  return order;
}

std::string braced(std::span<const int64_t> numbers) {
  std::string text = "{";
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i != 0) text += ',';
    text += std::to_string(numbers[i]);
  }
  return text += '}';
}

Shape Shape::array(ElementType type, std::vector<int64_t> dimensions) {
  auto order = row_major(static_cast<int64_t>(dimensions.size()));
  return array(type, std::move(dimensions), std::move(order));
}
Shape Shape::array(ElementType type, std::vector<int64_t> dimensions,
                   std::vector<int64_t> minor_to_major) {
  LAMELLA_CHECK(is_array_type(type), "shape: expected an element type of arrays, got ",
                element_name(type));
  for (int64_t size : dimensions) {
    LAMELLA_CHECK(size >= 0, "shape: expected sizes that are not negative, got ",
                  braced(dimensions));
  }
  std::string beyond = beyond_bounds(dimensions);
  LAMELLA_CHECK(beyond.empty(), "shape: ", beyond);
  Shape shape;
  shape.type_ = type;
  shape.dimensions_ = std::move(dimensions);
  shape.set_layout(std::move(minor_to_major));
  return shape;
}
Shape Shape::tuple(std::vector<Shape> elements) {
  Shape shape;
  shape.type_ = ElementType::TUPLE;
  shape.leaves_ = 0;
  for (const Shape& element : elements) {
    shape.depth_ = std::max(shape.depth_, element.depth_);
    shape.leaves_ += element.leaves_;
    LAMELLA_CHECK(shape.leaves_ <= kMostLeaves, "shape: expected a tuple of at most ", kMostLeaves,
                  " arrays, got more");
  }
  LAMELLA_CHECK(++shape.depth_ <= kMostNestedTuples, "shape: expected at most ", kMostNestedTuples,
                " nested tuples, got more");
  shape.elements_ = std::move(elements);
  return shape;
}
Shape Shape::buffer(Shape array) {
  std::vector<Shape> elements;
  elements.push_back(std::move(array));
  Shape shape = tuple(std::move(elements));
  shape.is_buffer_ = true;
  return shape;
}
Shape Shape::token() {
  Shape shape;
  shape.type_ = ElementType::TOKEN;
  return shape;
}
Shape Shape::opaque() {
  Shape shape;
  shape.type_ = ElementType::OPAQUE_TYPE;
  return shape;
}
Shape Shape::parse(std::string_view text) {
  Scanner scanner(text, "shape");
  Shape shape = scan_shape(scanner);
  if (!scanner.at_end()) scanner.fail("expected the end of the shape, got ", scanner.next());
  return shape;
}

bool Shape::is_row_major() const {
  for (size_t i = 0; i < minor_to_major_.size(); ++i) {
    if (minor_to_major_[i] != static_cast<int64_t>(minor_to_major_.size() - 1 - i)) return false;
  }
  return true;
}
int64_t Shape::elements() const {
  if (!is_array()) return 0;
  int64_t count = 1;
  for (int64_t size : dimensions_) count *= size;
  return count;
}
int64_t Shape::bytes() const {
  int64_t sum = 0;
  if (is_array()) {
    return __builtin_mul_overflow(elements(), int64_t{element_bytes(type_)}, &sum) ? INT64_MAX
                                                                                   : sum;
  }
  for (const Shape& element : elements_) {
    if (__builtin_add_overflow(sum, element.bytes(), &sum)) return INT64_MAX;
  }
  return sum;
}

Shape Shape::with_element_type(ElementType type) const {
  Shape changed = *this;
  changed.type_ = type;
  return changed;
}
Shape Shape::with_default_layout() const {
  Shape changed = *this;
  if (is_array()) changed.set_layout(row_major(rank()));
  for (Shape& element : changed.elements_) element = element.with_default_layout();
  return changed;
}
void Shape::set_layout(std::vector<int64_t> minor_to_major, std::string suffix) {
  LAMELLA_CHECK(is_array() && is_permutation_of_dims(minor_to_major, rank()),
                "shape: expected a layout that names each of ", rank(), " dimensions once, got ",
                braced(minor_to_major));
  minor_to_major_ = std::move(minor_to_major);
  layout_suffix_ = std::move(suffix);
  has_layout_ = true;
}
void Shape::clear_layout() {
  has_layout_ = false;
  minor_to_major_.clear();
  layout_suffix_.clear();
}
void Shape::set_dynamic(int64_t dimension) {
  dynamic_.resize(dimensions_.size());
  dynamic_[static_cast<size_t>(dimension)] = true;
}

void Shape::set_unbounded(int64_t dimension) {
  set_dynamic(dimension);
  unbounded_.resize(dimensions_.size());
  unbounded_[static_cast<size_t>(dimension)] = true;
}
bool Shape::is_abstract() const {
  return is_buffer_ || !unbounded_.empty() || std::ranges::any_of(elements_, &Shape::is_abstract);
}

int64_t Shape::dimensions(int64_t i) const {
  LAMELLA_CHECK(i >= 0 && i < rank(), "shape: expected a dimension of ", to_string(false), ", got ",
                i);
  return dimension(i);
}
const Shape& Shape::tuple_shapes(int64_t i) const {
  LAMELLA_CHECK(i >= 0 && i < tuple_shapes_size(), "shape: expected an element of ",
                to_string(false), ", got ", i);
  return elements_[static_cast<size_t>(i)];
}
bool Shape::is_static() const {
  for (bool dynamic : dynamic_) {
    if (dynamic) return false;
  }
  for (const Shape& element : elements_) {
    if (!element.is_static()) return false;
  }
  return true;
}

bool Shape::compatible(const Shape& other) const {
  if (type_ != other.type_ || dimensions_ != other.dimensions_) return false;
  if (is_buffer_ != other.is_buffer_) return false;
  if (elements_.size() != other.elements_.size()) return false;
  for (size_t i = 0; i < elements_.size(); ++i) {
    if (!elements_[i].compatible(other.elements_[i])) return false;
  }
  return true;
}
bool Shape::operator==(const Shape& other) const {
  return type_ == other.type_ && is_buffer_ == other.is_buffer_ &&
         has_layout_ == other.has_layout_ && dimensions_ == other.dimensions_ &&
         minor_to_major_ == other.minor_to_major_ && dynamic_ == other.dynamic_ &&
         unbounded_ == other.unbounded_ && layout_suffix_ == other.layout_suffix_ &&
         elements_ == other.elements_;
}

std::string Shape::to_string(bool with_layout) const {
  std::string text;
  append_to(&text, with_layout);
  return text;
}
void Shape::append_to(std::string* text, bool with_layout) const {
  if (is_tuple()) {
    *text += is_buffer_ ? "b(" : "(";
    for (size_t i = 0; i < elements_.size(); ++i) {
      if (i != 0) *text += ", ";
      // XLA numbers every fifth element too, so that long tuples can be read.
      if (i >= 5 && i % 5 == 0) *text += str("/*index=", i, "*/");
      elements_[i].append_to(text, with_layout);
    }
    *text += ')';
    return;
  }
  *text += element_name(type_);
  if (!is_valid()) return;
  *text += '[';
  for (size_t i = 0; i < dimensions_.size(); ++i) {
    if (i != 0) *text += ',';
    if (is_unbounded(static_cast<int64_t>(i))) {
      *text += '?';
      continue;
    }
    if (is_dynamic(static_cast<int64_t>(i))) *text += "<=";
    *text += std::to_string(dimensions_[i]);
  }
  *text += ']';
  if (with_layout && has_layout_ && (!dimensions_.empty() || !layout_suffix_.empty())) {
    std::string layout = braced(minor_to_major_);
    layout.insert(layout.size() - 1, layout_suffix_);
    *text += layout;
  }
}

std::vector<int64_t> scan_braced_integers(Scanner& scanner) {
  std::vector<int64_t> numbers;
  scanner.expect('{');
  while (!scanner.take('}')) {
    numbers.push_back(scanner.integer());
    if (scanner.peek() != '}') scanner.expect(',');
  }
  return numbers;
}

namespace {

// The position after the number and letters in parentheses that follow a layout's dimensions, such
// as ":D(D,C)T(8,128)(2,1)L(1)#(u32)*(u32)E(4)S(5)SC(0:1)M(8)": each part at most once, in this
// order.
void scan_layout_suffix(Scanner& s) {
  s.expect(':');
  for (std::string_view part : {"D", "T", "L", "#", "*", "E", "S", "SC", "M"}) {
    bool has_part = s.peek() == part[0];
    if (has_part && part[0] == 'S') {
      size_t before = s.position();
      has_part = s.word() == part;
      if (!has_part) s.seek(before);
    } else if (has_part) {
      s.take(part);
    }
    if (!has_part) continue;
    do {
      s.expect('(');
      while (s.peek() != ')' && s.peek() != '\0' && s.peek() != '{') {
        bool is_level = s.peek() >= 'A' && s.peek() <= 'Z';
        if (part == "D" && is_level && s.peek() != 'D' && s.peek() != 'C' && s.peek() != 'S') {
          s.fail("expected D, C or S, got ", s.next());
        }
        std::string_view others = part == "D"                  ? "DCS+~"
                                  : part == "T"                ? "*"
                                  : part == "#" || part == "*" ? "usbf"
                                                               : "";
        const char next = s.peek();
        if (std::string_view("0123456789,-:").find(next) == std::string_view::npos &&
            others.find(next) == std::string_view::npos) {
          s.fail("expected numbers in the parentheses of a layout, got ", s.next());
        }
        s.take(next);
      }
      s.expect(')');
    } while (s.peek() == '(' && (part == "T" || part == "SC"));
  }
}

}  // namespace

bool layout_follows(Scanner& scanner) {
  size_t before = scanner.position();
  bool follows = scanner.take('{') &&
                 (scanner.peek() == ':' || (scanner.peek() >= '0' && scanner.peek() <= '9'));
  scanner.seek(before);
  return follows;
}

Shape scan_shape(Scanner& scanner, int depth) {
  if (scanner.take('(')) {
    if (depth == kMostNestedTuples) {
      scanner.fail("expected at most ", kMostNestedTuples, " nested tuples");
    }
    std::vector<Shape> elements;
    while (!scanner.take(')')) {
      elements.push_back(scan_shape(scanner, depth + 1));
      if (scanner.peek() != ')') scanner.expect(',');
    }
    return Shape::tuple(std::move(elements));
  }
  scanner.skip();
  size_t begin = scanner.position();
  std::string_view name = scanner.word();
  if (name == "b" && scanner.take('(')) {
    Shape array = scan_shape(scanner, depth + 1);
    if (!array.is_array()) scanner.fail("expected a buffer of an array, got ", array.to_string());
    scanner.expect(')');
    return Shape::buffer(std::move(array));
  }
  auto type = element_from_name(name);
  if (name.empty() || !type || scanner.peek() != '[') {
    scanner.seek(begin);
    scanner.fail("expected a shape, got ", scanner.next());
  }
  scanner.expect('[');
  std::vector<int64_t> dimensions;
  std::vector<bool> dynamic;
  std::vector<int64_t> unbounded;
  while (!scanner.take(']')) {
    if (scanner.take('?')) {
      unbounded.push_back(static_cast<int64_t>(dimensions.size()));
      dimensions.push_back(0);
      dynamic.push_back(false);
      if (scanner.peek() != ']') scanner.expect(',');
      continue;
    }
    dynamic.push_back(scanner.take("<="));
    size_t at = scanner.position();
    dimensions.push_back(scanner.integer());
    if (dimensions.back() < 0) {
      scanner.seek(at);
      scanner.fail("expected a size that is not negative, got ", dimensions.back());
    }
    if (scanner.peek() != ']') scanner.expect(',');
  }
  if (*type == ElementType::TOKEN || *type == ElementType::OPAQUE_TYPE) {
    if (!dimensions.empty()) scanner.fail("expected '", name, "[]' to have no dimensions");
    return *type == ElementType::TOKEN ? Shape::token() : Shape::opaque();
  }
  if (*type == ElementType::TUPLE) scanner.fail("expected a tuple's shape in parentheses");
  if (std::string beyond = beyond_bounds(dimensions); !beyond.empty()) scanner.fail(beyond);
  size_t rank = dimensions.size();
  Shape shape = Shape::array(*type, std::move(dimensions));
  for (size_t i = 0; i < rank; ++i) {
    if (dynamic[i]) shape.set_dynamic(static_cast<int64_t>(i));
  }
  for (int64_t i : unbounded) shape.set_unbounded(i);
  if (layout_follows(scanner)) {
    size_t at = scanner.position();
    scanner.expect('{');
    std::vector<int64_t> order;
    while (scanner.peek() >= '0' && scanner.peek() <= '9') {
      order.push_back(scanner.integer());
      if (!scanner.take(',')) break;
    }
    std::string suffix;
    if (scanner.peek() != '}') {
      if (scanner.peek() != ':')
        scanner.fail("expected '}' to end the layout, got ", scanner.next());
      size_t begin = scanner.position();
      scan_layout_suffix(scanner);
      suffix = scanner.from(begin);
    }
    scanner.expect('}');
    if (!is_permutation_of_dims(order, static_cast<int64_t>(rank))) {
      scanner.seek(at);
      scanner.fail("expected a layout that names each of ", rank, " dimensions once, got ",
                   braced(order));
    }
    shape.set_layout(std::move(order), std::move(suffix));
  }
  return shape;
}

}  // namespace lamella::hlo
