// Reading types and attributes of MLIR's text.
#include "lamella/graph/stablehlo/text_reader.h"

#include <cerrno>
#include <charconv>
#include <cstring>

#include "lamella/graph/hlo/attribute_scanner.h"
#include "lamella/graph/hlo/literal.h"
#include "lamella/graph/stablehlo/names.h"

namespace lamella::hlo::stablehlo {
namespace {

using Kind = Attribute::Kind;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string_view TextReader::word() {
  s.skip();
  const size_t begin = s.position();
  size_t at = begin;
  auto is_part = [](char c) { return (Scanner::is_word(c) && c != '-') || c == '$'; };
  while (at < s.text().size() && is_part(s.text()[at])) ++at;
  s.seek(at);
  return s.from(begin);
}
bool TextReader::at_word(std::string_view wanted) {
  s.skip();
  const size_t begin = s.position();
  const bool found = word() == wanted;
  s.seek(begin);
  return found;
}
bool TextReader::take_word(std::string_view wanted) {
  if (!at_word(wanted)) return false;
  word();
  return true;
}
std::string_view TextReader::quoted() {
  s.skip();
  // MLIR's escapes are those of HLO's strings, and two hexadecimal digits.
  const size_t begin = s.position();
  if (!s.take('"')) s.fail("expected a string, got ", s.next());
  std::string made;
  bool has_escapes = false;
  std::string_view text = s.text();
  size_t at = begin + 1;
  auto hex = [](char c) {
    return is_digit(c)            ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  for (; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] != '\\') {
      made += text[at];
      continue;
    }
    has_escapes = true;
    if (at + 1 >= text.size()) break;
    const char next = text[++at];
    if (next == 'n' || next == 't') {
      made += next == 'n' ? '\n' : '\t';
    } else if (at + 1 < text.size() && hex(next) >= 0 && hex(text[at + 1]) >= 0) {
      made += static_cast<char>(hex(next) * 16 + hex(text[at + 1]));
      ++at;
    } else {
      made += next;
    }
  }
  if (at >= text.size()) s.fail_at(begin, "expected a quote to end the string");
  s.seek(at + 1);
  return has_escapes ? arena_.copy(made) : text.substr(begin + 1, at - begin - 1);
}
std::string_view TextReader::symbol() {
  s.expect('@');
  if (s.at('"')) return quoted();
  std::string_view name = word();
  if (name.empty()) s.fail("expected the name of a symbol, got ", s.next());
  return name;
}
std::string_view TextReader::rest_of_brackets() {
  const size_t begin = s.position();
  int depth = 1;
  std::string_view text = s.text();
  for (size_t at = begin; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      s.seek(at);
      quoted();
      at = s.position() - 1;
    } else if (c == '<' || c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if ((c == '>' && text[at - 1] != '-') || c == ')' || c == ']' || c == '}') {
      if (--depth > 0) continue;
      s.seek(at + 1);
      return text.substr(begin, at - begin);
    }
  }
  s.fail_at(begin, "expected the end of the brackets");
}
bool TextReader::location() {
  if (!at_word("loc")) return false;
  word();
  s.expect('(');
  rest_of_brackets();
  return true;
}
void TextReader::alias() {
  s.expect('#');
  std::string_view name = word();
  s.expect('=');
  if (!location()) aliases_[name] = attribute();
}

// ---- Types -------------------------------------------------------------------------------------

ElementType TextReader::element() {
  const size_t begin = s.position();
  std::string_view name = word();
  if (name == "complex") {
    s.expect('<');
    const ElementType made = complex_of_part(element());
    s.expect('>');
    if (made == ElementType::Invalid) s.fail_at(begin, "expected a complex type of f32 or f64");
    return made;
  }
  auto found = element_from_text(name);
  return found ? *found : ElementType::Invalid;
}
void TextReader::bounds(Type* made) {
  auto read = [&](char end) {
    while (!s.take(end)) {
      made->bounds.push_back(s.take('?') ? kUnknownSize : s.integer());
      if (s.peek() != end) s.expect(',');
    }
  };
  if (s.take("#stablehlo.bounds<")) return read('>');
  if (s.take("#stablehlo.type_extensions<bounds")) {
    s.expect('=');
    s.expect('[');
    read(']');
    s.expect('>');
    return;
  }
  attribute();
}
// Behind "tensor" or "memref": <2x?x3xf32>.
const Type* TextReader::tensor(Type::Kind kind) {
  auto* made = arena_.make<Type>();
  made->kind = kind;
  s.expect('<');
  for (;;) {
    s.skip();
    const size_t begin = s.position();
    if (s.take('?')) {
      made->sizes.push_back(kUnknownSize);
    } else if (is_digit(s.peek())) {
      made->sizes.push_back(s.integer());
    } else {
      break;
    }
    if (!s.at('x')) s.fail_at(begin, "expected 'x' behind a size");
    s.seek(s.position() + 1);
  }
  s.skip();
  const size_t begin = s.position();
  if (s.peek() == '*' || s.peek() == '!' || (made->element = element()) == ElementType::Invalid) {
    s.seek(begin);
    made->kind = Type::Kind::Other;
    made->name = rest_of_brackets();
    return made;
  }
  if (s.take(',')) bounds(made);
  s.expect('>');
  return made;
}
const Type* TextReader::type() {
  Deeper deeper(this);
  s.skip();
  const size_t begin = s.position();
  auto* made = arena_.make<Type>();
  auto list = [&](char end) {
    while (!s.take(end)) {
      made->parts.push_back(type());
      if (s.peek() != end) s.expect(',');
    }
  };
  if (s.take('(')) {
    made->kind = Type::Kind::Function;
    list(')');
    s.expect("->");
    std::vector<const Type*> parts = std::move(made->parts);
    made->parts.clear();
    s.take('(') ? list(')') : made->parts.push_back(type());
    made->results = std::move(made->parts);
    made->parts = std::move(parts);
    return made;
  }
  if (s.take('!')) {
    std::string_view name = word();
    if (name == "stablehlo.token") {
      made->kind = Type::Kind::Token;
      return made;
    }
    if (name == "stablehlo.future") {
      made->kind = Type::Kind::Future;
      s.expect('<');
      list('>');
      return made;
    }
    if (s.take('<')) rest_of_brackets();
    made->name = s.from(begin);
    return made;
  }
  std::string_view name = word();
  if (name == "tensor") return tensor(Type::Kind::Tensor);
  if (name == "memref") return tensor(Type::Kind::Buffer);
  if (name == "tuple") {
    made->kind = Type::Kind::Tuple;
    s.expect('<');
    list('>');
    return made;
  }
  s.seek(begin);
  made->kind = Type::Kind::Element;
  made->element = element();
  if (made->element == ElementType::Invalid) {
    if (name != "none" && name != "tf32") {
      s.seek(begin);
      s.fail("expected a type, got ", s.next());
    }
    made->kind = Type::Kind::Other;
    made->name = name;
  }
  return made;
}
void TextReader::types(std::vector<const Type*>& before, std::vector<const Type*>& after,
                       bool* has_arrow) {
  *has_arrow = false;
  s.skip();
  auto list = [&](std::vector<const Type*>& into) {
    if (s.take('(')) {
      while (!s.take(')')) {
        into.push_back(type());
        if (s.peek() != ')') s.expect(',');
      }
      return;
    }
    do {
      into.push_back(type());
    } while (s.take(','));
  };
  list(before);
  if (s.take("->")) {
    *has_arrow = true;
    list(after);
  }
}

// ---- Attributes --------------------------------------------------------------------------------

const Attribute* TextReader::integer(int64_t value) {
  auto* made = arena_.make<Attribute>();
  made->kind = Kind::Integer;
  made->integer = value;
  return made;
}
const Attribute* TextReader::list(std::vector<const Attribute*> parts) {
  auto* made = arena_.make<Attribute>();
  made->kind = Kind::List;
  made->list = std::move(parts);
  return made;
}
const Attribute* TextReader::integers(const std::vector<int64_t>& numbers) {
  std::vector<const Attribute*> parts;
  for (int64_t one : numbers) parts.push_back(integer(one));
  return list(std::move(parts));
}
const Attribute* TextReader::text_attribute(Kind kind, std::string_view text) {
  auto* made = arena_.make<Attribute>();
  made->kind = kind;
  made->text = text;
  return made;
}

void TextReader::dictionary(std::vector<Named>& entries) {
  Deeper deeper(this);
  s.expect('{');
  while (!s.take('}')) {
    s.skip();
    std::string_view name = s.at('"') ? quoted() : word();
    if (name.empty()) s.fail("expected the name of an attribute, got ", s.next());
    entries.push_back({name, s.take('=') ? attribute() : arena_.make<Attribute>()});
    if (s.peek() != '}') s.expect(',');
  }
}

const Attribute* TextReader::number() {
  auto* made = arena_.make<Attribute>();
  s.skip();
  const size_t begin = s.position();
  const bool negative = s.take('-');
  std::string_view digits = word();
  bool is_real = digits.find('.') != std::string_view::npos;
  if (is_real && (digits.ends_with('e') || digits.ends_with('E')) && (s.at('+') || s.at('-'))) {
    s.seek(s.position() + 1);
    word();
  }
  std::string text(s.from(begin));
  const Type* stated = s.take(':') ? type() : nullptr;
  made->type = stated;
  const ElementType element = stated != nullptr ? stated->element : ElementType::Invalid;
  const bool is_hex = digits.starts_with("0x");
  is_real |= is_floating(element);
  char* end = nullptr;
  if (is_hex) {
    const uint64_t bits = std::strtoull(text.c_str() + (negative ? 1 : 0), &end, 16);
    made->kind = is_real ? Kind::Real : Kind::Integer;
    if (is_real) {
      made->real = real_of_bits(bits, element);
    } else {
      made->integer = negative ? -static_cast<int64_t>(bits) : static_cast<int64_t>(bits);
    }
  } else if (is_real) {
    made->kind = Kind::Real;
    made->real = std::strtod(text.c_str(), &end);
  } else {
    made->kind = element == ElementType::PRED ? Kind::Boolean : Kind::Integer;
    errno = 0;
    made->integer = negative ? std::strtoll(text.c_str(), &end, 10)
                             : static_cast<int64_t>(std::strtoull(text.c_str(), &end, 10));
    if (errno == ERANGE) s.fail_at(begin, str("expected a number of 64 bits, got '", text, "'"));
  }
  if (end != text.c_str() + text.size()) {
    s.fail_at(begin, str("expected a number, got '", text, "'"));
  }
  return made;
}

// Behind "<": "name = value, ..." as a dictionary, or words of which the last one counts.
const Attribute* TextReader::in_angles() {
  auto* made = arena_.make<Attribute>();
  made->kind = Kind::Dictionary;
  while (!s.take('>')) {
    std::string_view name = word();
    if (name.empty()) s.fail("expected a word, got ", s.next());
    if (s.take('=')) {
      made->entries.push_back({name, attribute()});
    } else if (s.peek() == '>' || Scanner::is_word(s.peek())) {
      made->kind = Kind::Word;
      made->text = name;
      continue;
    }
    if (s.peek() != '>') s.expect(',');
  }
  return made;
}
const Attribute* TextReader::hashed() {
  const size_t begin = s.position();
  s.expect('#');
  std::string_view name = word();
  if (name == "stablehlo.conv") {
    auto* made = arena_.make<Attribute>();
    made->kind = Kind::Dictionary;
    s.expect('<');
    convolution_dimensions(made->entries);
    s.expect('>');
    return made;
  }
  if (s.at('<')) {
    s.expect('<');
    if (name == "stablehlo" || name.starts_with("stablehlo.") || name.starts_with("chlo")) {
      return in_angles();
    }
    rest_of_brackets();
    return text_attribute(Kind::Word, s.from(begin));
  }
  auto found = aliases_.find(name);
  if (found != aliases_.end()) return found->second;
  if (name.starts_with("loc")) return text_attribute(Kind::Location, {});
  s.fail_at(begin, str("expected the name of an attribute above, got '#", name, "'"));
}

const Attribute* TextReader::attribute() {
  Deeper deeper(this);
  const char next = s.peek();
  switch (next) {
    case '"':
      return text_attribute(Kind::String, quoted());
    case '#':
      return hashed();
    case '@': {
      std::string_view name = symbol();
      while (s.take("::")) name = symbol();
      return text_attribute(Kind::Symbol, name);
    }
    case '{': {
      auto* made = arena_.make<Attribute>();
      made->kind = Kind::Dictionary;
      dictionary(made->entries);
      return made;
    }
    case '<':
      s.expect('<');
      return in_angles();
    case '[': {
      std::vector<const Attribute*> parts;
      s.expect('[');
      while (!s.take(']')) {
        parts.push_back(attribute());
        if (s.peek() != ']') s.expect(',');
      }
      return list(std::move(parts));
    }
    default:
      break;
  }
  if (is_digit(next) || next == '-') return number();
  const size_t begin = s.position();
  std::string_view name = word();
  if (name == "true" || name == "false") {
    auto* made = arena_.make<Attribute>();
    made->kind = Kind::Boolean;
    made->integer = name == "true" ? 1 : 0;
    return made;
  }
  if (name == "unit") return arena_.make<Attribute>();
  if (name == "dense") return dense();
  if (name == "array") return array();
  if (name == "loc") {
    s.expect('(');
    rest_of_brackets();
    return text_attribute(Kind::Location, {});
  }
  if (name == "dense_resource")
    s.fail_at(begin, "expected elements, got a resource of another place");
  auto* made = arena_.make<Attribute>();
  const bool is_type = s.peek() == '<' || element_from_text(name) || name == "none" ||
                       name == "tf32" || next == '(' || next == '!';
  if (is_type) {
    s.seek(begin);
    made->kind = Kind::TypeOf;
    made->type = type();
    return made;
  }
  if (name.empty()) s.fail("expected an attribute, got ", s.next());
  made->kind = Kind::Word;
  made->text = name;
  return made;
}

void TextReader::convolution_dimensions(std::vector<Named>& into) {
  static constexpr const char* kNames[3][3] = {
      {"input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"},
      {"kernel_input_feature_dimension", "kernel_output_feature_dimension",
       "kernel_spatial_dimensions"},
      {"output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"}};
  for (size_t part = 0; part < 3; ++part) {
    if (part == 1) s.expect('x');
    if (part == 2) s.expect("->");
    const char first = part == 1 ? 'i' : 'b', second = part == 1 ? 'o' : 'f';
    std::vector<int64_t> spatial;
    int64_t place = 0;
    s.expect('[');
    while (!s.take(']')) {
      if (s.take(first)) {
        into.push_back({kNames[part][0], integer(place)});
      } else if (s.take(second)) {
        into.push_back({kNames[part][1], integer(place)});
      } else if (!s.take('?')) {
        const int64_t number = s.integer();
        if (number < 0 || number >= kMostDimensions) s.fail("expected the number of a dimension");
        if (static_cast<size_t>(number) >= spatial.size()) {
          spatial.resize(static_cast<size_t>(number) + 1, -1);
        }
        spatial[static_cast<size_t>(number)] = place;
      }
      ++place;
      if (s.peek() != ']') s.expect(',');
    }
    into.push_back({kNames[part][2], integers(spatial)});
  }
}

}  // namespace lamella::hlo::stablehlo
