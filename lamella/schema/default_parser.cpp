// A default is read first as a literal, then turned into a value of the argument's type.
#include "lamella/schema/default_parser.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "lamella/schema/enums.h"
#include "lamella/schema/printer.h"
#include "lamella/schema/suggest.h"

namespace lamella::detail {
namespace {

enum class LiteralKind { kWord, kInt, kFloat, kComplex, kString, kList };

struct Literal {
  Literal(LiteralKind kind_, std::string text_) : kind(kind_), text(std::move(text_)) {}

  LiteralKind kind;
  std::string text;  // canonical spelling
  std::uint32_t offset = 0;
  std::int64_t integer = 0;
  double real = 0;
  std::complex<double> complex;
  std::string string;  // the content of a string, or the word
  std::vector<Literal> elements;
};

class LiteralReader {
 public:
  explicit LiteralReader(Cursor& in) : in_(in) {}

  Literal read(int depth = 0) {
    in_.skip_space();
    const std::uint32_t at = in_.offset();
    Literal literal = read_inner(depth);
    literal.offset = at;
    return literal;
  }

 private:
  Literal read_inner(int depth) {
    const char c = in_.current();
    if (c == '[') return list(depth);
    if (c == '"' || c == '\'') return string();
    if (c == '-' || c == '+' || c == '.' || Cursor::is_digit(c)) return number();
    std::string_view word = in_.take_identifier();
    if (word.empty()) in_.fail("expected a default value after '=', got " + in_.describe());
    if (word == "inf" || word == "nan") return special(word, 1.0);
    Literal literal(LiteralKind::kWord, std::string(word));
    literal.string = literal.text;
    return literal;
  }

  Literal special(std::string_view word, double sign) {
    Literal literal(LiteralKind::kFloat, (sign < 0 ? "-" : "") + std::string(word));
    literal.real = sign * (word == "inf" ? std::numeric_limits<double>::infinity()
                                         : std::numeric_limits<double>::quiet_NaN());
    return literal;
  }

  Literal list(int depth) {
    if (depth > 8) in_.fail("the list is nested too deeply");
    in_.take_char();
    Literal literal(LiteralKind::kList, "[");
    if (!in_.accept("]")) {
      while (true) {
        literal.elements.push_back(read(depth + 1));
        if (literal.elements.size() > 1) literal.text += ", ";
        literal.text += literal.elements.back().text;
        if (in_.accept("]")) break;
        if (!in_.accept(",")) in_.fail("expected ',' or ']' in the list, got " + in_.describe());
      }
    }
    literal.text += "]";
    return literal;
  }

  Literal string() {
    const std::uint32_t start = in_.offset();
    const char quote = in_.take_char();
    std::string content;
    while (true) {
      if (in_.done() || in_.current() == '\n') in_.fail_at(start, "the string is not closed");
      char c = in_.take_char();
      if (c == quote) break;
      if (c == '\\') {
        if (in_.done()) in_.fail_at(start, "the string is not closed");
        c = escape();
      }
      content += c;
    }
    Literal literal(LiteralKind::kString, quote_string(content));
    literal.string = std::move(content);
    return literal;
  }

  char escape() {
    const std::uint32_t at = in_.offset() - 1;
    const char c = in_.take_char();
    switch (c) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case 'a':
        return '\a';
      case 'b':
        return '\b';
      case '\\':
      case '"':
      case '\'':
        return c;
      default:
        break;
    }
    if (c >= '0' && c <= '7') {
      int value = c - '0';
      for (int i = 0; i < 2 && in_.current() >= '0' && in_.current() <= '7'; ++i) {
        value = value * 8 + (in_.take_char() - '0');
      }
      return static_cast<char>(value);
    }
    in_.fail_at(at, std::string("unknown escape '\\") + c + "' in the string");
  }

  Literal number() {
    const std::uint32_t start = in_.offset();
    std::string text = take_number(start);
    Literal literal = to_number(text, start);
    if (in_.peek_raw('j')) {
      in_.take_char();
      return imaginary(0.0, as_double(literal), text + "j");
    }
    if ((in_.peek_raw('+') || in_.peek_raw('-')) && literal.kind != LiteralKind::kComplex) {
      const std::uint32_t second = in_.offset();
      std::string tail = take_number(second);
      Literal imag = to_number(tail, second);
      if (!in_.peek_raw('j')) in_.fail_at(second, "expected 'j' after the imaginary part");
      in_.take_char();
      return imaginary(as_double(literal), as_double(imag), text + tail + "j");
    }
    return literal;
  }

  Literal imaginary(double real, double imag, std::string text) {
    Literal literal(LiteralKind::kComplex, std::move(text));
    literal.complex = {real, imag};
    return literal;
  }

  static double as_double(const Literal& literal) {
    return literal.kind == LiteralKind::kInt ? static_cast<double>(literal.integer) : literal.real;
  }

  std::string take_number(std::uint32_t start) {
    std::string text;
    if (in_.peek_raw('-') || in_.peek_raw('+')) text += in_.take_char();
    for (std::string_view word : {"inf", "nan"}) {
      if (in_.rest().starts_with(word)) return text + std::string(in_.take_n(3));
    }
    std::string_view whole = in_.take_digits();
    text += whole;
    std::string_view fraction;
    if (in_.peek_raw('.')) {
      text += in_.take_char();
      fraction = in_.take_digits();
      text += fraction;
    }
    if (whole.empty() && fraction.empty())
      in_.fail_at(start, "expected a number, got '" + text + "'");
    if (in_.peek_raw('e') || in_.peek_raw('E')) {
      text += in_.take_char();
      if (in_.peek_raw('-') || in_.peek_raw('+')) text += in_.take_char();
      std::string_view exponent = in_.take_digits();
      if (exponent.empty()) in_.fail_at(start, "the exponent of '" + text + "' has no digits");
      text += exponent;
    }
    return text;
  }

  Literal to_number(const std::string& text, std::uint32_t start) {
    const bool negative = text[0] == '-';
    std::string_view digits = text;
    if (digits[0] == '-' || digits[0] == '+') digits.remove_prefix(1);
    if (digits == "inf" || digits == "nan") return special(digits, negative ? -1.0 : 1.0);
    const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
    const char* end = text.data() + text.size();
    if (digits.find_first_of(".eE") == std::string_view::npos) {
      Literal literal(LiteralKind::kInt, text);
      auto [stop, error] = std::from_chars(begin, end, literal.integer);
      if (error != std::errc() || stop != end) {
        in_.fail_at(start, "the integer " + text + " does not fit in 64 bits");
      }
      return literal;
    }
    Literal literal(LiteralKind::kFloat, text);
    auto [stop, error] = std::from_chars(begin, end, literal.real);
    if (error != std::errc() || stop != end) {
      in_.fail_at(start, "the number " + text + " does not fit in a double");
    }
    return literal;
  }

  Cursor& in_;
};

// The literal as a value of `type`. Failures name the type and what was given.
class Converter {
 public:
  explicit Converter(Cursor& in) : in_(in) {}

  DefaultValue::Value convert(const Literal& literal, SchemaType type) {
    if (is_word(literal, "None")) {
      if (type.is_optional() || type.kind() == TypeKind::kAny || type.kind() == TypeKind::kNone ||
          type.kind() == TypeKind::kGenerator || type.kind() == TypeKind::kTypeVar) {
        return DefaultValue::None{};
      }
      in_.fail_at(literal.offset,
                  "None is a default of optional types only; did you mean '" + type.str() + "?'?");
    }
    type = type.without_optional();
    if (type.is_list()) return list(literal, type);
    return scalar(literal, type);
  }

 private:
  static bool is_word(const Literal& literal, std::string_view word) {
    return literal.kind == LiteralKind::kWord && literal.string == word;
  }

  [[noreturn]] void mismatch(const Literal& literal, SchemaType type, std::string hint = "") {
    in_.fail_at(literal.offset,
                "expected a default of type " + type.str() + ", got " + literal.text + hint);
  }

  DefaultValue::Value scalar(const Literal& literal, SchemaType type) {
    switch (type.kind()) {
      case TypeKind::kBool:
        return boolean(literal, type);
      case TypeKind::kInt:
        if (literal.kind == LiteralKind::kWord) return word(literal, type);
        return integer(literal, type);
      case TypeKind::kFloat:
        return real(literal, type);
      case TypeKind::kComplex:
        if (literal.kind == LiteralKind::kComplex) return literal.complex;
        return std::complex<double>(real(literal, type), 0.0);
      case TypeKind::kScalar:
      case TypeKind::kAny:
        return number(literal, type);
      case TypeKind::kStr:
        return string(literal, type);
      case TypeKind::kScalarType:
      case TypeKind::kMemoryFormat:
      case TypeKind::kLayout:
        if (literal.kind == LiteralKind::kInt) return literal.integer;
        return word(literal, type);
      case TypeKind::kDevice:
        // cpu, "cuda:1": not checked here; the code that uses the value parses devices.
        if (literal.kind == LiteralKind::kWord || literal.kind == LiteralKind::kString) {
          return literal.string;
        }
        mismatch(literal, type);
      case TypeKind::kTensor:
        if (literal.kind == LiteralKind::kList && literal.elements.empty()) {
          return DefaultValue::None{};
        }
        mismatch(literal, type, "; write [] for an undefined tensor, or make it 'Tensor? x=None'");
      default:
        in_.fail_at(literal.offset, "an argument of type " + type.str() +
                                        " cannot have a default other than None of '" + type.str() +
                                        "?'");
    }
  }

  bool boolean(const Literal& literal, SchemaType type) {
    if (is_word(literal, "True")) return true;
    if (is_word(literal, "False")) return false;
    if (is_word(literal, "true")) mismatch(literal, type, "; did you mean True?");
    if (is_word(literal, "false")) mismatch(literal, type, "; did you mean False?");
    mismatch(literal, type);
  }

  std::int64_t integer(const Literal& literal, SchemaType type) {
    if (literal.kind == LiteralKind::kInt) return literal.integer;
    mismatch(literal, type);
  }

  double real(const Literal& literal, SchemaType type) {
    if (literal.kind == LiteralKind::kInt) return static_cast<double>(literal.integer);
    if (literal.kind == LiteralKind::kFloat) return literal.real;
    mismatch(literal, type);
  }

  DefaultValue::Value number(const Literal& literal, SchemaType type) {
    switch (literal.kind) {
      case LiteralKind::kInt:
        return literal.integer;
      case LiteralKind::kFloat:
        return literal.real;
      case LiteralKind::kComplex:
        return literal.complex;
      case LiteralKind::kWord:
        return boolean(literal, type);
      case LiteralKind::kString:
        if (type.kind() == TypeKind::kAny) return literal.string;
        mismatch(literal, type);
      default:
        mismatch(literal, type);
    }
  }

  std::string string(const Literal& literal, SchemaType type) {
    if (literal.kind == LiteralKind::kString) return literal.string;
    mismatch(literal, type,
             literal.kind == LiteralKind::kWord
                 ? "; did you mean " + quote_string(literal.text) + "?"
                 : "");
  }

  std::int64_t word(const Literal& literal, SchemaType type) {
    if (literal.kind == LiteralKind::kWord) {
      if (auto value = enum_word_value(type.kind(), literal.string)) return *value;
    }
    mismatch(literal, type, did_you_mean(literal.text, enum_words(type.kind())));
  }

  DefaultValue::Value list(const Literal& literal, SchemaType type) {
    const SchemaType element = type.element();
    std::size_t count = literal.elements.size();
    if (literal.kind != LiteralKind::kList) {
      if (!type.fixed_size()) {
        mismatch(literal, type,
                 "; only a list of fixed length, like " + element.str() +
                     "[2], takes a bare value: write [" + literal.text + "]");
      }
      count = static_cast<std::size_t>(*type.fixed_size());
    } else if (type.fixed_size() && count > 1 && element.kind() == TypeKind::kBool &&
               count != static_cast<std::size_t>(*type.fixed_size())) {
      // Only bool[N] has a fixed length; the N of int[N] only says how often to repeat a bare
      // number.
      mismatch(literal, type, ", which has " + std::to_string(count) + " elements");
    }
    auto at = [&](std::size_t i) -> const Literal& {
      return literal.kind == LiteralKind::kList ? literal.elements[i] : literal;
    };
    auto fill = [&](auto read) {
      std::vector<decltype(read(literal, element))> values;
      for (std::size_t i = 0; i < count; ++i) values.push_back(read(at(i), element));
      return values;
    };
    switch (element.kind()) {
      case TypeKind::kInt:
        return fill([&](const Literal& l, SchemaType t) { return integer(l, t); });
      case TypeKind::kFloat:
        return fill([&](const Literal& l, SchemaType t) { return real(l, t); });
      case TypeKind::kBool:
        return fill([&](const Literal& l, SchemaType t) { return boolean(l, t); });
      case TypeKind::kStr:
        return fill([&](const Literal& l, SchemaType t) { return string(l, t); });
      case TypeKind::kScalar: {
        bool whole = true;
        for (std::size_t i = 0; i < count; ++i) whole = whole && at(i).kind == LiteralKind::kInt;
        if (whole) return fill([&](const Literal& l, SchemaType t) { return integer(l, t); });
        return fill([&](const Literal& l, SchemaType t) { return real(l, t); });
      }
      default:
        if (count == 0) return std::vector<std::int64_t>{};
        mismatch(literal, type, "; the default of such a list is []");
    }
  }

  Cursor& in_;
};

}  // namespace

DefaultValue parse_default(Cursor& in, SchemaType type) {
  Literal literal = LiteralReader(in).read();
  DefaultValue value;
  value.value = Converter(in).convert(literal, type);
  value.text = std::move(literal.text);
  return value;
}

}  // namespace lamella::detail
