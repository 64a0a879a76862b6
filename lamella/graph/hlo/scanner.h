// Scanner: reads HLO text by characters, and reports the position of errors. Internal to
// lamella/graph.
#pragma once
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "lamella/core/error.h"

namespace lamella::hlo {

class Scanner {
 public:
  // `what` is the prefix of error messages, such as "hlo".
  Scanner(std::string_view text, const char* what) : text_(text), what_(what) {}

  size_t position() const { return at_; }
  void seek(size_t position) { at_ = position; }
  std::string_view text() const { return text_; }
  std::string_view from(size_t begin) const { return text_.substr(begin, at_ - begin); }
  bool at_end() {
    skip();
    return at_ == text_.size();
  }
  // The next character after blanks and comments; 0 at the end.
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  // True if the character is at the current position; blanks are not skipped.
  bool at(char c) const { return at_ < text_.size() && text_[at_] == c; }
  // Consumes the character if it is next after blanks.
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    skip();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail("expected '", std::string_view(&c, 1), "', got ", next());
  }
  void expect(std::string_view word) {
    if (!take(word)) fail("expected '", word, "', got ", next());
  }
  // Letters, digits, '_', '.', '-'; empty if none is next.
  std::string_view word() {
    skip();
    size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return from(begin);
  }
  int64_t integer() {
    skip();
    int64_t value = 0;
    const char* begin = text_.data() + at_;
    auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) {
      fail("expected a number of 64 bits, got ", next());
    }
    if (error != std::errc()) fail("expected a number, got ", next());
    at_ += static_cast<size_t>(end - begin);
    return value;
  }
  // A description of the next word or character for messages: "'foo'", "the end".
  std::string next() {
    skip();
    if (at_ >= text_.size()) return "the end";
    size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    if (end == at_) ++end;
    std::string_view found = text_.substr(at_, end - at_ > 40 ? 40 : end - at_);
    return str("'", found, "'");
  }

  template <class... Parts>
  [[noreturn]] LAMELLA_COLD void fail(const Parts&... parts) {
    fail_at(at_, str(parts...));
  }
  // "hlo: line 3, column 7: ..."; columns count bytes from 1.
  [[noreturn]] LAMELLA_COLD void fail_at(size_t position, const std::string& message) const {
    size_t line = 1, start = 0;
    for (size_t i = 0; i < position && i < text_.size(); ++i) {
      if (text_[i] == '\n') {
        ++line;
        start = i + 1;
      }
    }
    throw Error(str(what_, ": line ", line, ", column ", position - start + 1, ": ", message));
  }

  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  }
  // Skips blanks and comments: /* ... */, and // to the end of the line.
  void skip() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '/' && at_ + 1 < text_.size() &&
                 (text_[at_ + 1] == '*' || text_[at_ + 1] == '/')) {
        skip_comment();
      } else {
        return;
      }
    }
  }

 private:
  LAMELLA_COLD void skip_comment() {
    size_t begin = at_;
    if (text_[at_ + 1] == '/') {
      size_t end = text_.find('\n', at_);
      at_ = end == std::string_view::npos ? text_.size() : end;
      return;
    }
    size_t end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos) fail_at(begin, "expected '*/' to end the comment");
    at_ = end + 2;
  }

  std::string_view text_;
  const char* what_;
  size_t at_ = 0;
};

}  // namespace lamella::hlo
