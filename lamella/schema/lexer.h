// The cursor that the signature parser reads through. Internal to lamella/schema.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lamella::detail {

// Thrown only inside the parser, whose entry points convert it to a SchemaProblem.
struct Failure {
  std::string message;
  std::uint32_t offset;
};

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  std::uint32_t offset() const { return static_cast<std::uint32_t>(pos_); }
  std::uint32_t offset_after_space() {
    skip_space();
    return offset();
  }

  void skip_space() {
    while (pos_ < text_.size() && is_space(text_[pos_])) ++pos_;
  }

  bool at_end() {
    skip_space();
    return pos_ == text_.size();
  }

  // True if `token` comes next, after spaces.
  bool peek(std::string_view token) {
    skip_space();
    return text_.substr(pos_).starts_with(token);
  }

  bool accept(std::string_view token) {
    if (!peek(token)) return false;
    pos_ += token.size();
    return true;
  }

  // The same for a whole word, not the beginning of a longer one.
  bool accept_word(std::string_view word) {
    if (!peek(word)) return false;
    std::size_t end = pos_ + word.size();
    char next = end < text_.size() ? text_[end] : ' ';
    if (is_letter(next) || is_digit(next) || next == '_') return false;
    pos_ = end;
    return true;
  }

  void expect(std::string_view token, const char* where) {
    if (accept(token)) return;
    fail("expected '" + std::string(token) + "' " + where + ", got " + describe());
  }

  void expect_end(const char* where) {
    if (!at_end()) fail("unexpected " + describe() + " " + where);
  }

  // Without skipping spaces first.
  bool peek_raw(char c) const { return pos_ < text_.size() && text_[pos_] == c; }
  char current() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }
  bool done() const { return pos_ >= text_.size(); }
  char take_char() { return text_[pos_++]; }

  // The identifier at the cursor; empty if there is none.
  std::string_view take_identifier() {
    std::size_t end = pos_;
    if (end < text_.size() && (is_letter(text_[end]) || text_[end] == '_')) {
      while (end < text_.size() &&
             (is_letter(text_[end]) || is_digit(text_[end]) || text_[end] == '_')) {
        ++end;
      }
    }
    return take(end);
  }

  std::string_view take_digits() {
    std::size_t end = pos_;
    while (end < text_.size() && is_digit(text_[end])) ++end;
    return take(end);
  }

  std::string_view rest() const { return text_.substr(pos_); }
  std::string_view take_n(std::size_t count) { return take(pos_ + count); }

  // What stands at the cursor, for a message: 'word', ')' or the end of the text.
  std::string describe() {
    skip_space();
    if (pos_ == text_.size()) return "the end of the text";
    const std::size_t start = pos_;
    std::string_view word = take_identifier();
    if (word.empty()) word = take_digits();
    for (std::string_view token : {"->", "::", "..."}) {
      if (word.empty() && rest().starts_with(token)) word = take_n(token.size());
    }
    if (word.empty()) {
      // A whole UTF-8 character, never a part of one.
      std::size_t end = pos_ + 1;
      while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) ++end;
      word = take(end);
    }
    pos_ = start;
    return "'" + std::string(word) + "'";
  }

  [[noreturn]] void fail(std::string message) {
    skip_space();
    fail_at(offset(), std::move(message));
  }
  [[noreturn]] void fail_at(std::uint32_t at, std::string message) {
    throw Failure{std::move(message), at};
  }

  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

 private:
  std::string_view take(std::size_t end) {
    std::string_view taken = text_.substr(pos_, end - pos_);
    pos_ = end;
    return taken;
  }

  std::string_view text_;
  std::size_t pos_ = 0;
};

}  // namespace lamella::detail
