// Reading the elements of tensors in MLIR's text.
#include <cerrno>
#include <charconv>
#include <cstring>

#include "lamella/graph/hlo/literal.h"
#include "lamella/graph/stablehlo/names.h"
#include "lamella/graph/stablehlo/text_reader.h"

namespace lamella::hlo::stablehlo {
namespace {

using Kind = Attribute::Kind;

}  // namespace

// array<i64: 1, 2>
const Attribute* TextReader::array() {
  s.expect('<');
  const ElementType element = this->element();
  if (element == ElementType::Invalid) s.fail("expected the type of an element");
  auto* type = arena_.make<Type>();
  type->kind = Type::Kind::Tensor;
  type->element = element;
  std::string bytes;
  if (s.take(':')) {
    do {
      element_value(bytes, element);
    } while (s.take(','));
  }
  s.expect('>');
  type->sizes = {static_cast<int64_t>(bytes.size()) / element_bytes(element)};
  auto* made = arena_.make<Attribute>();
  made->kind = Kind::Elements;
  made->type = type;
  made->text = arena_.copy(bytes);
  return made;
}

// One element: a number, true, false, bits as 0x..., or a complex number (1.0, 2.0).
void TextReader::element_value(std::string& bytes, ElementType type) {
  Literal one(Shape::scalar(type));
  auto part = [&](ElementType of) {
    s.skip();
    const size_t begin = s.position();
    if (take_word("true") || take_word("false")) return s.from(begin) == "true" ? 1.0 : 0.0;
    s.take('-');
    std::string_view digits = word();
    if ((digits.ends_with('e') || digits.ends_with('E')) && (s.at('+') || s.at('-'))) {
      s.seek(s.position() + 1);
      word();
    }
    std::string text(s.from(begin));
    char* end = nullptr;
    double value = 0;
    if (digits.starts_with("0x") && is_floating(of)) {
      value = real_of_bits(std::strtoull(text.c_str(), &end, 16), of);
    } else {
      value = std::strtod(text.c_str(), &end);
    }
    if (text.empty() || end != text.c_str() + text.size()) {
      s.fail_at(begin, str("expected an element, got '", text, "'"));
    }
    return value;
  };
  if (is_complex(type)) {
    const ElementType of = part_of_complex(type);
    s.expect('(');
    const double re = part(of);
    s.expect(',');
    const double im = part(of);
    s.expect(')');
    one.set_complex(0, {re, im});
  } else if (is_floating(type)) {
    s.skip();
    const size_t begin = s.position();
    std::string_view digits = word();
    if (digits.starts_with("0x")) {  // the bits themselves, as those of a NaN
      uint64_t bits = 0;
      auto [end, error] =
          std::from_chars(digits.data() + 2, digits.data() + digits.size(), bits, 16);
      if (error != std::errc() || end != digits.data() + digits.size()) {
        s.fail_at(begin, str("expected an element, got '", digits, "'"));
      }
      std::memcpy(one.data(), &bits, one.bytes());
    } else {
      s.seek(begin);
      one.set_real(0, part(type));
    }
  } else {
    s.skip();
    const size_t begin = s.position();
    if (at_word("true") || at_word("false")) {
      one.set_integer(0, part(type) != 0 ? 1 : 0);
    } else {
      Attribute value;
      const bool negative = s.take('-');
      std::string text(word());
      char* end = nullptr;
      errno = 0;
      uint64_t bits = std::strtoull(text.c_str(), &end, text.starts_with("0x") ? 16 : 10);
      if (text.empty() || end != text.c_str() + text.size() || errno == ERANGE) {
        s.fail_at(begin, str("expected an integer, got '", text, "'"));
      }
      one.set_integer(0, static_cast<int64_t>(negative ? ~bits + 1 : bits));
    }
  }
  bytes.append(static_cast<const char*>(one.data()), one.bytes());
}
void TextReader::elements(std::string& bytes, ElementType type, const std::vector<int64_t>& sizes,
                          size_t depth, size_t* count) {
  if (depth == sizes.size()) {
    element_value(bytes, type);
    ++*count;
    return;
  }
  s.expect('[');
  int64_t found = 0;
  while (!s.take(']')) {
    elements(bytes, type, sizes, depth + 1, count);
    ++found;
    if (s.peek() != ']') s.expect(',');
  }
  if (found != sizes[depth]) s.fail("expected ", sizes[depth], " elements in a list, got ", found);
}
// Behind "dense": <[[1, 2], [3, 4]]> : tensor<2x2xi32>. The type follows the elements.
const Attribute* TextReader::dense() {
  s.expect('<');
  const size_t begin = s.position();
  rest_of_brackets();
  const size_t end = s.position();
  s.expect(':');
  const Type* type = this->type();
  if (type->kind != Type::Kind::Tensor) s.fail_at(begin, "expected the elements of a tensor");
  const size_t after = s.position();
  s.seek(begin);
  const Shape shape = shape_of(*type, [&](const std::string& why) { s.fail(why); });
  const auto count = static_cast<size_t>(shape.elements());
  const auto size = static_cast<size_t>(element_bytes(type->element));
  std::string bytes;
  auto* made = arena_.make<Attribute>();
  made->kind = Kind::Elements;
  made->type = type;
  if (s.peek() == '"') {
    std::string_view digits = quoted();
    if (!digits.starts_with("0x") || digits.size() % 2 != 0) {
      s.fail_at(begin, "expected bytes as two digits each, behind 0x");
    }
    for (size_t i = 2; i < digits.size(); i += 2) {
      uint8_t byte = 0;
      auto [stop, error] = std::from_chars(digits.data() + i, digits.data() + i + 2, byte, 16);
      if (error != std::errc() || stop != digits.data() + i + 2) {
        s.fail_at(begin, "expected bytes as two digits each, behind 0x");
      }
      bytes += static_cast<char>(byte);
    }
    made->is_splat = count != 1 && bytes.size() == size;
  } else if (s.peek() == '[') {
    size_t found = 0;
    elements(bytes, type->element, type->sizes, 0, &found);
  } else if (s.peek() != '>') {
    element_value(bytes, type->element);
    made->is_splat = count != 1;
  }
  if (bytes.size() != (made->is_splat ? 1 : count) * size) {
    s.fail_at(begin, str("expected ", count, " elements, got ", bytes.size() / size));
  }
  s.expect('>');
  if (s.position() != end) s.fail("expected the end of the elements, got ", s.next());
  s.seek(after);
  made->text = arena_.copy(bytes);
  return made;
}

}  // namespace lamella::hlo::stablehlo
