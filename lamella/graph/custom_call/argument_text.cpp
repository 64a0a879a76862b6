// Scans the text of an operator's arguments, and prints argument values.
#include "lamella/graph/custom_call/argument_text.h"

#include <charconv>
#include <limits>

#include "lamella/core/error.h"
#include "lamella/core/ivalue.h"
#include "lamella/dispatch/value_text.h"

namespace lamella::hlo {
namespace {

constexpr int kMaxListDepth = 8;  // levels of nested lists

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
  // The next character other than a space or newline; '\0' at the end.
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

  // The length of "inf" or "nan" at a position, if it is a whole word or a part of a complex
  // number.
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
      // Parses with the sign, because the lowest integer has no positive counterpart.
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

// Prints values that scan_arguments can read; throws for others.
class Words final : public ValueWords {
 public:
  std::string tensor(lamella_tensor* tensor) override {
    if (tensor == nullptr) return "None";
    TensorBase number = TensorBase::borrow(tensor);
    ScalarType type = number.scalar_type();
    // A number of another type would be read back with one of these types.
    bool is_read_back = type == ScalarType::Double || type == ScalarType::Long ||
                        type == ScalarType::Bool || type == ScalarType::ComplexDouble;
    if (!is_read_back) {
      throw TypeError(
          str("hlo: expected a number of float64, int64, bool or complex128, got ", type));
    }
    return *number_text(number);
  }
  std::string other(const lamella_value& value, SchemaType type) override {
    if (value.tag == LAMELLA_GENERATOR) {
      throw TypeError(
          "hlo: expected no generator; operators in a module draw from the default one");
    }
    throw TypeError(str("hlo: expected a value of a type that has a text, got ",
                        lamella::detail::tag_name(value.tag), " for ", type.str()));
  }
};

}  // namespace

std::vector<NamedItem> scan_arguments(std::string_view text,
                                      const std::function<void(size_t, const std::string&)>& fail) {
  return Scan(text, fail).arguments();
}

std::string argument_text(const lamella_value& value, SchemaType type) {
  Words words;
  return value_text(value, type, words);
}

}  // namespace lamella::hlo
