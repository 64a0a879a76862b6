// Words of arguments, and their printing.
#include "lamella/graph/custom_call/argument_text.h"

#include <charconv>
#include <limits>

#include "lamella/core/error.h"
#include "lamella/core/ivalue.h"
#include "lamella/schema/enums.h"
#include "lamella/schema/printer.h"

namespace lamella::hlo {
namespace {

constexpr int kMaxListDepth = 8;  // lists in lists

class Scan {
 public:
  Scan(std::string_view text, const std::function<void(size_t, const std::string&)>& fail)
      : text_(text), fail_(fail) {}

  std::vector<NamedItem> arguments() {
    bool closed = take('(');
    std::vector<NamedItem> items;
    char end = closed ? ')' : '\0';
    while (next() != end) {
      if (!items.empty()) {
        if (!take(',')) stop(str("expected ", closed ? "',' or ')'" : "','", ", got ", rest()));
      }
      items.push_back(named());
    }
    if (closed) ++at_;
    if (next() != '\0') stop("expected the end, got " + rest());
    return items;
  }

 private:
  // The next character that is no space; '\0' at the end.
  char next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  std::string rest() {
    if (next() == '\0') return "the end";
    return str("'", text_.substr(at_, 20), "'");
  }
  [[noreturn]] void stop(const std::string& what) { stop_at(at_, what); }
  [[noreturn]] void stop_at(size_t at, const std::string& what) {
    fail_(at, what);
    throw Error(what);
  }
  static bool letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  static bool digit(char c) { return c >= '0' && c <= '9'; }

  NamedItem named() {
    NamedItem one;
    if (letter(next())) {
      size_t begin = at_;
      std::string_view word = identifier();
      if (next() == '=') {
        ++at_;
        one.name = word;
      } else {
        at_ = begin;
      }
    }
    one.item = item(0);
    return one;
  }
  std::string_view identifier() {
    size_t begin = at_;
    while (at_ < text_.size() && (letter(text_[at_]) || digit(text_[at_]))) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Item item(int depth) {
    char c = next();
    size_t begin = at_;
    Item made;
    made.at = begin;
    if (c == '%') {
      ++at_;
      made.kind = Item::Kind::Operand;
      std::from_chars_result end =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), made.integer);
      if (end.ec != std::errc() || made.integer < 0 ||
          !digit(at_ < text_.size() ? text_[at_] : ' ')) {
        stop_at(begin, "expected the number of an operand behind '%', got " + rest());
      }
      at_ = static_cast<size_t>(end.ptr - text_.data());
    } else if (c == '[') {
      list(made, depth);
    } else if (c == '"' || c == '\'') {
      string(made);
    } else if (digit(c) || c == '-' || c == '+' || c == '.' || special(at_) != 0) {
      number(made);
    } else if (letter(c)) {
      made.kind = Item::Kind::Word;
      identifier();
      // A device may have an index: cuda:1.
      if (at_ + 1 < text_.size() && text_[at_] == ':' && digit(text_[at_ + 1])) {
        ++at_;
        identifier();
      }
      made.string = text_.substr(begin, at_ - begin);
    } else {
      stop("expected a value, got " + rest());
    }
    made.text = text_.substr(begin, at_ - begin);
    return made;
  }
  void list(Item& made, int depth) {
    if (depth == kMaxListDepth) stop("expected lists that are nested less deeply");
    made.kind = Item::Kind::List;
    ++at_;
    while (next() != ']') {
      if (!made.elements.empty() && !take(',')) stop("expected ',' or ']', got " + rest());
      made.elements.push_back(item(depth + 1));
    }
    ++at_;
  }
  void string(Item& made) {
    made.kind = Item::Kind::String;
    size_t begin = at_;
    char quote = text_[at_++];
    for (;;) {
      if (at_ >= text_.size()) stop_at(begin, "expected a quote to end the string");
      char c = text_[at_++];
      if (c == quote) return;
      if (c == '\\') {
        if (at_ >= text_.size()) stop_at(begin, "expected a quote to end the string");
        c = escaped();
      }
      made.string += c;
    }
  }
  char escaped() {
    char c = text_[at_++];
    constexpr std::string_view letters = "ntrfvab", meanings = "\n\t\r\f\v\a\b";
    size_t found = letters.find(c);
    if (found != std::string_view::npos) return meanings[found];
    if (c < '0' || c > '7') return c;
    int code = c - '0';
    for (int i = 0; i < 2 && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '7'; ++i) {
      code = code * 8 + (text_[at_++] - '0');
    }
    return static_cast<char>(code);
  }

  // Length of "inf" or "nan" at a place, if that is a whole word or the part of a complex number.
  size_t special(size_t at) const {
    std::string_view word = text_.substr(at, 3);
    if (word != "inf" && word != "nan") return 0;
    char after = at + 3 < text_.size() ? text_[at + 3] : '\0';
    return digit(after) || (letter(after) && after != 'j') ? 0 : 3;
  }
  void number(Item& made) {
    bool whole = true;
    double first = part(&whole, &made.integer);
    auto at = [&](char c) { return at_ < text_.size() && text_[at_] == c; };
    if (at('j')) {
      ++at_;
      made.kind = Item::Kind::Complex;
      made.number = {0.0, first};
    } else if (at('+') || at('-')) {
      double second = part(&whole, &made.integer);
      if (!at('j')) stop("expected 'j' behind the imaginary part, got " + rest());
      ++at_;
      made.kind = Item::Kind::Complex;
      made.number = {first, second};
    } else {
      made.kind = whole ? Item::Kind::Int : Item::Kind::Real;
      made.real = first;
    }
  }
  double part(bool* whole, int64_t* integer) {
    size_t begin = at_;
    bool negative = text_[at_] == '-';
    if (text_[at_] == '-' || text_[at_] == '+') ++at_;
    if (size_t length = special(at_)) {
      bool nan = text_[at_] == 'n';
      at_ += length;
      *whole = false;
      double value =
          nan ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
      return negative ? -value : value;
    }
    const char* from = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    double value = 0;
    std::from_chars_result real = std::from_chars(from, end, value);
    if (real.ec != std::errc() || !(digit(*from) || *from == '.')) {
      stop_at(begin, str("expected a number, got '", text_.substr(begin, 20), "'"));
    }
    std::string_view digits(from, static_cast<size_t>(real.ptr - from));
    at_ += digits.size();
    if (digits.find_first_not_of("0123456789") != std::string_view::npos) {
      *whole = false;
    } else {
      // With its sign, since the lowest integer has no positive one.
      std::string signed_digits = (negative ? "-" : "") + std::string(digits);
      std::from_chars_result read = std::from_chars(
          signed_digits.data(), signed_digits.data() + signed_digits.size(), *integer);
      if (read.ec != std::errc()) {
        stop_at(begin, str("expected an integer of 64 bits, got ", signed_digits));
      }
    }
    return negative ? -value : value;
  }

  std::string_view text_;
  const std::function<void(size_t, const std::string&)>& fail_;
  size_t at_ = 0;
};

// The shortest text that reads back as the same number, and is no integer's.
template <class T>
std::string number_text(T number) {
  char text[32];
  std::string made(text, std::to_chars(text, text + sizeof(text), number).ptr);
  return made.find_first_of(".eni") == std::string::npos ? made + ".0" : made;
}
std::string complex_text(double real, double imag) {
  std::string second = number_text(imag);
  return number_text(real) + (second[0] == '-' ? "" : "+") + second + "j";
}
std::string tensor_text(const TensorBase& tensor) {
  const void* data = tensor.const_data_ptr();
  switch (tensor.scalar_type()) {
    case ScalarType::Double:
      return number_text(*static_cast<const double*>(data));
    case ScalarType::Long:
      return std::to_string(*static_cast<const int64_t*>(data));
    case ScalarType::Bool:
      return *static_cast<const bool*>(data) ? "True" : "False";
    case ScalarType::ComplexDouble: {
      auto* parts = static_cast<const double*>(data);
      return complex_text(parts[0], parts[1]);
    }
    default:
      throw TypeError(str("hlo: expected a number of float64, int64, bool or complex128, got ",
                          tensor.scalar_type()));
  }
}
std::string enum_text(TypeKind kind, int64_t number) {
  if (kind != TypeKind::kInt) {
    for (std::string_view word : enum_words(kind)) {
      if (enum_word_value(kind, word) == number) return std::string(word);
    }
  }
  return std::to_string(number);
}
template <class F>
std::string list_text(uint32_t count, F&& element) {
  std::string text = "[";
  for (uint32_t i = 0; i < count; ++i) {
    if (i != 0) text += ", ";
    text += element(i);
  }
  return text + "]";
}

}  // namespace

std::vector<NamedItem> scan_arguments(std::string_view text,
                                      const std::function<void(size_t, const std::string&)>& fail) {
  return Scan(text, fail).arguments();
}

std::string value_text(const lamella_value& value, SchemaType type) {
  type = type.without_optional();
  switch (value.tag) {
    case LAMELLA_NONE:
      return "None";
    case LAMELLA_TENSOR:
      if (value.as.tensor == nullptr) return "None";
      return tensor_text(TensorBase::borrow(value.as.tensor));
    case LAMELLA_INT:
      return enum_text(type.kind(), value.as.i);
    case LAMELLA_DOUBLE:
      return number_text(value.as.d);
    case LAMELLA_BOOL:
      return value.as.i != 0 ? "True" : "False";
    case LAMELLA_COMPLEX: {
      auto* parts = static_cast<const double*>(value.as.pointer);
      return complex_text(parts[0], parts[1]);
    }
    case LAMELLA_STRING:
      return lamella::detail::quote_string(
          {static_cast<const char*>(value.as.pointer), value.size});
    case LAMELLA_DEVICE:
      return IValue::unpack_device(value.as.i).str();
    case LAMELLA_INT_LIST:
      return list_text(value.size, [&](uint32_t i) {
        return enum_text(type.element().kind(), static_cast<const int64_t*>(value.as.pointer)[i]);
      });
    case LAMELLA_DOUBLE_LIST:
      return list_text(value.size, [&](uint32_t i) {
        return number_text(static_cast<const double*>(value.as.pointer)[i]);
      });
    case LAMELLA_BOOL_LIST:
      return list_text(value.size, [&](uint32_t i) {
        bool flag = static_cast<const uint8_t*>(value.as.pointer)[i] != 0;
        return std::string(flag ? "True" : "False");
      });
    case LAMELLA_LIST:
      return list_text(value.size, [&](uint32_t i) {
        return value_text(static_cast<const lamella_value*>(value.as.pointer)[i], type.element());
      });
    case LAMELLA_GENERATOR:
      throw TypeError(
          "hlo: expected no generator; operators in a module draw from the default one");
    default:
      throw TypeError(str("hlo: expected a value of a type that a text can say, got ",
                          lamella::detail::tag_name(value.tag), " for ", type.str()));
  }
}

}  // namespace lamella::hlo
