// Literals: elements of every type, printing and reading.
#include "lamella/graph/hlo/literal.h"

#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "lamella/core/error.h"
#include "lamella/graph/hlo/scanner.h"
#include "lamella/graph/hlo/small_float.h"

namespace lamella::hlo {
namespace {

template <class T>
T load(const std::byte* data, int64_t i) {
  T value;
  std::memcpy(&value, data + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void store(std::byte* data, int64_t i, T value) {
  std::memcpy(data + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
}

constexpr size_t kMappedBytes = size_t{1} << 22;
// An array of more elements, given by one number, is printed as this number.
constexpr int64_t kMostPrinted = 1024;
// Elements of an array that a text may give by its first one.
constexpr int64_t kMostZeros = int64_t{1} << 28;

// Truncates a number to the width of the type; signed types are sign-extended.
int64_t cut(ElementType type, int64_t value) {
  int bits = element_bits(type);
  if (bits >= 64) return value;
  uint64_t low = static_cast<uint64_t>(value) & ((uint64_t{1} << bits) - 1);
  if (element_kind(type) == ElementKind::Signed && (low >> (bits - 1) & 1) != 0) {
    low |= ~uint64_t{0} << bits;
  }
  return static_cast<int64_t>(low);
}

// Rounds towards 0. Numbers beyond int64_t saturate; NaN gives 0.
int64_t nearest_integer(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (value < -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

// Decimal digits that distinguish any two numbers of the type: C++'s max_digits10.
int digits_of(ElementType type) {
  return lamella::detail::decimal_digits(element_row(type).mantissa_bits + 1) + 2;
}
// The bits of a NaN's payload that make it quiet; 0 for types whose NaNs have no payload.
uint64_t quiet_payload(ElementType type) {
  const ElementRow& row = element_row(type);
  return row.specials == SpecialCodes::Ieee ? uint64_t{1} << (row.mantissa_bits - 1) : 0;
}
void append_real(std::string* text, double value, ElementType type) {
  if (std::isnan(value)) {
    *text += std::signbit(value) ? "-nan" : "nan";
  } else if (std::isinf(value)) {
    *text += value < 0 ? "-inf" : "inf";
  } else {
    char buffer[40] = {};
    auto print = [&](int digits) {
      *std::to_chars(buffer, std::end(buffer) - 1, value, std::chars_format::general, digits).ptr =
          0;
    };
    // f32 and f64 are printed with the digits that any of their decimals keeps, where that is
    // enough.
    int few = type == ElementType::F32 ? 6 : type == ElementType::F64 ? 15 : 0;
    if (few != 0) {
      print(few);
      bool single = type == ElementType::F32;
      double read = single ? std::strtof(buffer, nullptr) : std::strtod(buffer, nullptr);
      if (read != value) few = 0;
    }
    if (few == 0) print(digits_of(type));
    *text += buffer;
  }
}

}  // namespace

Literal::Literal(Shape shape) : shape_(std::move(shape)) {
  if (shape_.is_tuple()) {
    elements_.reserve(shape_.tuple_shapes().size());
    for (const Shape& element : shape_.tuple_shapes()) elements_.emplace_back(element);
    return;
  }
  bytes_ = static_cast<size_t>(shape_.bytes());
  if (bytes_ >= kMappedBytes) {
    void* pages = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    data_ = std::unique_ptr<std::byte[], Free>(static_cast<std::byte*>(pages), Free(bytes_, false));
    return;
  }
  data_.reset(
      static_cast<std::byte*>(::operator new[](bytes_ == 0 ? 1 : bytes_, std::align_val_t(64))));
  if (bytes_ != 0) std::memset(data_.get(), 0, bytes_);
}
void Literal::Free::operator()(std::byte* p) const {
  if (is_lent) return;
  if (mapped != 0) {
    munmap(p, mapped);
  } else {
    ::operator delete[](p, std::align_val_t(64));
  }
}
Literal Literal::tuple(std::vector<Literal> elements) {
  std::vector<Shape> shapes;
  for (const Literal& element : elements) shapes.push_back(element.shape());
  Literal made;
  made.shape_ = Shape::tuple(std::move(shapes));
  made.elements_ = std::move(elements);
  return made;
}
Literal Literal::scalar(ElementType type, double value) {
  Literal made(Shape::scalar(type));
  if (is_floating(type)) {
    made.set_real(0, value);
  } else if (is_complex(type)) {
    made.set_complex(0, complex<double>(value));
  } else {
    made.set_integer(0, nearest_integer(value));
  }
  return made;
}
Literal Literal::elided(Shape shape) {
  Literal made;
  made.shape_ = std::move(shape);
  made.elided_ = true;
  return made;
}
Literal Literal::lent(Shape shape, const void* data) {
  Literal made = elided(std::move(shape));
  made.elided_ = false;
  made.bytes_ =
      static_cast<size_t>(made.shape_.elements()) * element_bytes(made.shape_.element_type());
  made.data_ = std::unique_ptr<std::byte[], Free>(static_cast<std::byte*>(const_cast<void*>(data)),
                                                  Free(0, true));
  return made;
}
bool Literal::is_elided() const {
  return elided_ || std::ranges::any_of(elements_, &Literal::is_elided);
}
Literal Literal::clone() const {
  if (elided_) return elided(shape_);
  if (shape_.is_tuple()) {
    Literal made;
    made.shape_ = shape_;
    for (const Literal& element : elements_) made.elements_.push_back(element.clone());
    return made;
  }
  Literal made(shape_);
  made.rest_is_zero_ = rest_is_zero_;
  size_t stated =
      rest_is_zero_ ? static_cast<size_t>(element_bytes(shape_.element_type())) : bytes_;
  if (stated != 0) std::memcpy(made.data_.get(), data_.get(), stated);
  return made;
}

void Literal::require_type(ElementType type) const {
  LAMELLA_CHECK(shape_.element_type() == type, "Literal: expected elements of ",
                element_name(shape_.element_type()), " to be asked for, got ", element_name(type));
}
size_t Literal::place(std::span<const int64_t> index) const {
  LAMELLA_CHECK(static_cast<int64_t>(index.size()) == shape_.rank(), "Literal: expected ",
                shape_.rank(), " indices for ", shape_.to_string(false), ", got ", braced(index));
  int64_t at = 0;
  for (size_t d = 0; d < index.size(); ++d) {
    int64_t size = shape_.dimensions()[d];
    LAMELLA_CHECK(index[d] >= 0 && index[d] < size, "Literal: expected indices within ",
                  shape_.to_string(false), ", got ", braced(index));
    at = at * size + index[d];
  }
  return static_cast<size_t>(at);
}
std::vector<Literal> Literal::DecomposeTuple() {
  LAMELLA_CHECK(shape_.is_tuple(), "DecomposeTuple: expected a tuple, got ",
                shape_.to_string(false));
  shape_ = Shape::tuple({});
  return std::exchange(elements_, {});
}
std::string Literal::ToString() const {
  if (!shape_.is_tuple()) return str(shape_.to_string(false), " ", to_string());
  std::string text = "(";
  for (const Literal& element : elements_) {
    if (text.size() > 1) text += ", ";
    text += element.ToString();
  }
  return text += ')';
}

double Literal::real_at(int64_t i) const {
  switch (shape_.element_type()) {
    case ElementType::F16:
      return static_cast<float>(load<Half>(data_.get(), i));
    case ElementType::BF16:
      return static_cast<float>(load<BFloat16>(data_.get(), i));
    case ElementType::F32:
      return load<float>(data_.get(), i);
    case ElementType::F64:
      return load<double>(data_.get(), i);
    default:
      break;
  }
  if (is_small_float(shape_.element_type())) {
    return decode_small_float(shape_.element_type(), load<uint8_t>(data_.get(), i));
  }
  if (is_complex(shape_.element_type())) return complex_at(i).real();
  if (shape_.element_type() == ElementType::U64) {
    return static_cast<double>(static_cast<uint64_t>(integer_at(i)));
  }
  return static_cast<double>(integer_at(i));
}
int64_t Literal::integer_at(int64_t i) const {
  ElementType type = shape_.element_type();
  if (type == ElementType::PRED) return load<uint8_t>(data_.get(), i) != 0;
  if (!is_integral(type)) return nearest_integer(real_at(i));
  bool is_signed = element_kind(type) == ElementKind::Signed;
  switch (element_bytes(type)) {
    case 1:
      return is_signed ? load<int8_t>(data_.get(), i) : load<uint8_t>(data_.get(), i);
    case 2:
      return is_signed ? load<int16_t>(data_.get(), i) : load<uint16_t>(data_.get(), i);
    case 4:
      if (is_signed) return load<int32_t>(data_.get(), i);
      return load<uint32_t>(data_.get(), i);
    default:
      return load<int64_t>(data_.get(), i);
  }
}
complex<double> Literal::complex_at(int64_t i) const {
  if (shape_.element_type() == ElementType::C64) {
    auto z = load<complex<float>>(data_.get(), i);
    return {static_cast<double>(z.real()), static_cast<double>(z.imag())};
  }
  if (shape_.element_type() == ElementType::C128) return load<complex<double>>(data_.get(), i);
  return {real_at(i), 0.0};
}
void Literal::set_real(int64_t i, double value) {
  rest_is_zero_ &= i == 0;
  std::byte* data = data_.get();
  switch (shape_.element_type()) {
    case ElementType::F16:
      return store(data, i, Half(static_cast<float>(value)));
    case ElementType::BF16:
      return store(data, i, BFloat16(static_cast<float>(value)));
    case ElementType::F32:
      return store(data, i, static_cast<float>(value));
    case ElementType::F64:
      return store(data, i, value);
    case ElementType::C64:
    case ElementType::C128:
      return set_complex(i, complex<double>(value));
    default:
      break;
  }
  if (is_small_float(shape_.element_type())) {
    return store(data, i, encode_small_float(shape_.element_type(), value));
  }
  set_integer(i, nearest_integer(value));
}
void Literal::set_integer(int64_t i, int64_t value) {
  rest_is_zero_ &= i == 0;
  ElementType type = shape_.element_type();
  std::byte* data = data_.get();
  if (type == ElementType::PRED) return store(data, i, static_cast<uint8_t>(value != 0));
  if (!is_integral(type)) return set_real(i, static_cast<double>(value));
  int64_t bits = cut(type, value);
  switch (element_bytes(type)) {
    case 1:
      return store(data, i, static_cast<uint8_t>(bits));
    case 2:
      return store(data, i, static_cast<uint16_t>(bits));
    case 4:
      return store(data, i, static_cast<uint32_t>(bits));
    default:
      return store(data, i, bits);
  }
}
void Literal::set_complex(int64_t i, complex<double> value) {
  rest_is_zero_ &= i == 0;
  if (shape_.element_type() == ElementType::C64) {
    store(data_.get(), i,
          complex<float>(static_cast<float>(value.real()), static_cast<float>(value.imag())));
  } else if (shape_.element_type() == ElementType::C128) {
    store(data_.get(), i, value);
  } else {
    set_real(i, value.real());
  }
}

bool Literal::operator==(const Literal& other) const {
  return shape_.compatible(other.shape_) && bytes_ == other.bytes_ && !elided_ && !other.elided_ &&
         (bytes_ == 0 || std::memcmp(data_.get(), other.data_.get(),
                                     rest_is_zero_ && other.rest_is_zero_
                                         ? static_cast<size_t>(element_bytes(shape_.element_type()))
                                         : bytes_) == 0) &&
         elements_ == other.elements_;
}

// ---- Printing ----

std::string Literal::to_string() const {
  std::string text;
  append_to(&text);
  return text;
}
void Literal::append_to(std::string* text) const {
  if (shape_.is_tuple()) {
    *text += "( ";
    for (size_t i = 0; i < elements_.size(); ++i) {
      if (i != 0) *text += ", ";
      elements_[i].append_to(text);
    }
    *text += " )";
    return;
  }
  if (shape_.is_token()) {
    *text += "token";
    return;
  }
  if (elided_) {
    *text += "{...}";
    return;
  }
  if (rest_is_zero_) return append_element(text, 0);
  int64_t next = 0;
  append_array(text, 0, &next);
}
void Literal::append_array(std::string* text, int64_t dimension, int64_t* next) const {
  if (dimension == shape_.rank()) {
    append_element(text, (*next)++);
    return;
  }
  int64_t size = shape_.dimension(dimension);
  // XLA's spacing.
  bool innermost = dimension + 1 == shape_.rank();
  bool close = innermost && (shape_.rank() == 1 || size <= 1);
  bool numbered = shape_.rank() >= 4 && dimension + 3 <= shape_.rank();
  *text += close ? "{" : "{ ";
  for (int64_t i = 0; i < size; ++i) {
    if (i != 0) *text += ", ";
    if (numbered) *text += str("/*i", dimension, "=", i, "*/ ");
    append_array(text, dimension + 1, next);
  }
  *text += close ? "}" : " }";
}
void Literal::append_element(std::string* text, int64_t i) const {
  ElementType type = shape_.element_type();
  switch (element_kind(type)) {
    case ElementKind::Predicate:
      *text += integer_at(i) != 0 ? (shape_.is_scalar() ? "true" : "1")
                                  : (shape_.is_scalar() ? "false" : "0");
      return;
    case ElementKind::Unsigned:
      *text += std::to_string(static_cast<uint64_t>(integer_at(i)));
      return;
    case ElementKind::Signed:
      *text += std::to_string(integer_at(i));
      return;
    case ElementKind::Complex: {
      complex<double> z = complex_at(i);
      *text += '(';
      append_real(text, z.real(), part_of_complex(type));
      *text += ", ";
      append_real(text, z.imag(), part_of_complex(type));
      *text += ')';
      return;
    }
    default:
      append_real(text, real_at(i), type);
      if (uint64_t quiet = quiet_payload(type); quiet != 0 && std::isnan(real_at(i))) {
        uint64_t bits = 0;
        auto size = static_cast<size_t>(element_bytes(type));
        std::memcpy(&bits, data_.get() + static_cast<size_t>(i) * size, size);
        uint64_t payload = bits & (2 * quiet - 1);
        char buffer[20];
        if (payload == quiet) return;
        *text +=
            str("(0x",
                std::string_view(buffer, std::to_chars(buffer, std::end(buffer), payload, 16).ptr),
                ")");
      }
  }
}

// ---- Reading ----

Literal Literal::scan(Scanner& scanner, const Shape& shape) {
  if (shape.is_tuple()) {
    Literal made;
    made.shape_ = shape;
    // XLA leaves out a tuple as a whole.
    if (scanner.take("{...}")) {
      for (const Shape& element : shape.tuple_shapes()) {
        made.elements_.push_back(elided(element));
      }
      return made;
    }
    scanner.expect('(');
    for (const Shape& element : shape.tuple_shapes()) {
      if (!made.elements_.empty()) scanner.expect(',');
      made.elements_.push_back(scan(scanner, element));
    }
    scanner.expect(')');
    return made;
  }
  if (shape.is_token()) {
    scanner.expect("token");
    return Literal(shape);
  }
  if (!shape.is_array()) {
    scanner.fail("expected a constant to be an array, got ", shape.to_string());
  }
  scanner.skip();
  size_t begin = scanner.position();
  std::string_view rest = scanner.text().substr(begin);
  if (shape.rank() > 0) {
    // "..." may follow some of the values.
    size_t end = rest.find_first_of("(;=\"");
    size_t dots = rest.substr(0, end).find("...");
    if (rest.starts_with('{') && dots != std::string_view::npos &&
        rest.substr(0, dots).find(')') == std::string_view::npos) {
      scanner.seek(begin + dots + 3);
      scanner.expect('}');
      return elided(shape);
    }
    if (!rest.starts_with('{')) {  // one number sets the first element, and the others are 0
      LAMELLA_CHECK(shape.elements() <= kMostZeros,
                    "hlo: expected a constant of moderate size, got ", shape.to_string(false));
      Literal made(shape);
      if (shape.elements() == 0) scanner.fail("expected '{}', got ", scanner.next());
      made.scan_element(scanner, 0);
      made.rest_is_zero_ = shape.elements() > kMostPrinted;
      return made;
    }
  }
  // Each element takes at least one character, so that a short text cannot ask for a huge literal.
  if (shape.elements() > static_cast<int64_t>(rest.size())) {
    scanner.fail("expected ", shape.elements(), " values of ", shape.to_string(false),
                 ", got a text of ", rest.size(), " characters");
  }
  Literal made(shape);
  int64_t next = 0;
  made.scan_array(scanner, 0, &next);
  return made;
}
void Literal::scan_array(Scanner& scanner, int64_t dimension, int64_t* next) {
  if (dimension == shape_.rank()) {
    scan_element(scanner, (*next)++);
    return;
  }
  // Sub-arrays may be preceded by their index as a comment, /*i0=0*/, which the scanner skips.
  // Commas are optional, as in XLA.
  scanner.expect('{');
  int64_t size = shape_.dimension(dimension);
  for (int64_t i = 0; i < size; ++i) {
    while (scanner.take(',')) continue;
    if (scanner.peek() == '}') {
      scanner.fail("expected ", size, " values in dimension ", dimension, " of ",
                   shape_.to_string(false), ", got ", i);
    }
    scan_array(scanner, dimension + 1, next);
  }
  size_t end = scanner.position();
  while (scanner.take(',')) continue;
  if (scanner.peek() != '}' && scanner.peek() != '\0') {
    scanner.seek(end);
    scanner.fail("expected ", size, " values in dimension ", dimension, " of ",
                 shape_.to_string(false), ", got more");
  }
  scanner.expect('}');
}

void Literal::set_nan(int64_t i, ElementType type, bool negative, uint64_t payload) {
  int bits = element_bits(type), mantissa = element_row(type).mantissa_bits;
  uint64_t value = ((uint64_t{1} << (bits - 1 - mantissa)) - 1) << mantissa | payload;
  if (negative) value |= uint64_t{1} << (bits - 1);
  auto size = static_cast<size_t>(element_bytes(type));
  std::memcpy(data_.get() + static_cast<size_t>(i) * size, &value, size);
}

// Reads a number, and stores it if the elements are real. Throws if the type does not reach it.
double Literal::scan_real(Scanner& scanner, int64_t i, ElementType type) {
  scanner.skip();
  size_t begin = scanner.position();
  const char* from = scanner.text().data() + begin;
  const char* end = scanner.text().data() + scanner.text().size();
  auto bad = [&](std::string_view what) {
    scanner.seek(begin);
    scanner.fail("expected ", what, " for ", element_name(type), ", got ", scanner.next());
  };
  bool negative = from < end && *from == '-', is_real = is_floating(shape_.element_type());
  const char* digits = negative ? from + 1 : from;
  if (std::string_view(digits, static_cast<size_t>(end - digits)).starts_with("nan")) {
    double value = std::numeric_limits<double>::quiet_NaN();
    uint64_t quiet = quiet_payload(type), payload = quiet;
    const char* after = digits + 3;
    if (after < end && *after == '(') {
      const char* number = after + 3;
      bool is_hex = end - after > 3 && after[1] == '0' && after[2] == 'x';
      if (!is_hex) bad("a NaN with a payload such as (0x1)");
      auto [stop, error] = std::from_chars(number, end, payload, 16);
      bool good = error == std::errc() && stop < end && *stop == ')';
      if (!good || payload == 0 || payload >= 2 * quiet) bad("a payload that fits");
      after = stop + 1;
    }
    scanner.seek(static_cast<size_t>(after - scanner.text().data()));
    if (is_real) {
      set_real(i, negative ? -value : value);
      if (quiet != 0) set_nan(i, type, negative, payload);
    }
    return negative ? -value : value;
  }
  double value = 0;
  auto [stop, error] = std::from_chars(from, end, value);
  if (error == std::errc::result_out_of_range) {
    value = std::strtod(std::string(from, static_cast<size_t>(stop - from)).c_str(), nullptr);
    if (std::isinf(value)) bad("a number that fits");
  } else if (error != std::errc()) {
    bad("a number");
  }
  if (is_real) set_real(i, value);
  double stored = type == ElementType::F64   ? value
                  : type == ElementType::F32 ? static_cast<double>(static_cast<float>(value))
                                             : real_at(i);
  bool below = type == ElementType::F8E8M0FNU && !(value >= 0x1p-128);
  if (std::isfinite(value) && (!std::isfinite(stored) || below)) bad("a number that fits");
  scanner.seek(static_cast<size_t>(stop - scanner.text().data()));
  return value;
}
void Literal::scan_element(Scanner& scanner, int64_t i) {
  ElementType type = shape_.element_type();
  scanner.skip();
  size_t begin = scanner.position();
  const char* at = scanner.text().data() + begin;
  const char* end = scanner.text().data() + scanner.text().size();
  // Numbers up to 2^64, of which those beyond 2^63 stand for negative ones, as in XLA.
  auto integer = [&] {
    uint64_t value = 0;
    int64_t below = 0;
    auto [stop, error] =
        *at == '-' ? std::from_chars(at, end, below) : std::from_chars(at, end, value);
    int64_t found = *at == '-' ? below : static_cast<int64_t>(value);
    bool is_bool = type == ElementType::PRED;
    bool fits = is_bool || element_bits(type) == 64 ||
                (element_kind(type) == ElementKind::Signed
                     ? cut(type, found) == found
                     : static_cast<uint64_t>(found) >> element_bits(type) == 0);
    if (error != std::errc() || !fits || (stop < end && (*stop == '.' || *stop == 'e'))) {
      scanner.seek(begin);
      scanner.fail("expected ", is_bool ? "0, 1, true or false" : "a number that fits", " for ",
                   element_name(type), ", got ", scanner.next());
    }
    scanner.seek(static_cast<size_t>(stop - scanner.text().data()));
    set_integer(i, found);
  };
  if (at == end) scanner.fail("expected a value, got the end");
  switch (element_kind(type)) {
    case ElementKind::Predicate:
      if (scanner.take("true")) return set_integer(i, 1);
      if (scanner.take("false")) return set_integer(i, 0);
      return integer();
    case ElementKind::Unsigned:
    case ElementKind::Signed:
      return integer();
    case ElementKind::Complex: {
      scanner.expect('(');
      double re = scan_real(scanner, i, part_of_complex(type));
      scanner.expect(',');
      double im = scan_real(scanner, i, part_of_complex(type));
      scanner.expect(')');
      return set_complex(i, {re, im});
    }
    default:
      scan_real(scanner, i, type);
  }
}

}  // namespace lamella::hlo
