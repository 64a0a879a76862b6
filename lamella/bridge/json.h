// JSON as Python's json module writes it, with NaN and Infinity: what bridge/_transform.py says of
// calls, and what it is told.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/bridge/bridge.h"

namespace lamella::bridge {

struct Json {
  enum class Type : uint8_t { kNull, kBool, kInt, kDouble, kString, kList, kMap };
  Type type = Type::kNull;
  int64_t i = 0;  // kBool, kInt
  double d = 0;   // kDouble
  std::string text;
  std::vector<Json> items;         // of a list, or the values of a map
  std::vector<std::string> names;  // of a map

  bool is(Type one) const { return type == one; }
  double number() const { return type == Type::kDouble ? d : static_cast<double>(i); }
  const Json* find(std::string_view name) const {
    for (size_t k = 0; k < names.size(); ++k) {
      if (names[k] == name) return &items[k];
    }
    return nullptr;
  }
};

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : left_(text) {}
  Json all() {
    Json made = value();
    skip();
    expect(left_.empty());
    return made;
  }

 private:
  static void expect(bool good) {
    if (!good) throw Failure("bridge: expected the text of a call", LAMELLA_VALUE_ERROR);
  }
  void skip() { left_.remove_prefix(std::min(left_.find_first_not_of(" \n"), left_.size())); }
  bool take(std::string_view word) {
    skip();
    if (!left_.starts_with(word)) return false;
    left_.remove_prefix(word.size());
    return true;
  }
  std::string string() {
    std::string made;
    for (;;) {
      expect(!left_.empty());
      const char c = left_[0];
      left_.remove_prefix(1);
      if (c == '"') return made;
      if (c != '\\') {
        made += c;
        continue;
      }
      expect(!left_.empty());
      const char kind = left_[0];
      left_.remove_prefix(1);
      constexpr std::string_view kKinds = "nrtbf\"\\/", kChars = "\n\r\t\b\f\"\\/";
      const size_t at = kKinds.find(kind);
      if (at != std::string_view::npos) {
        made += kChars[at];
      } else {  // a control character
        expect(kind == 'u' && left_.size() >= 4 && left_.starts_with("00"));
        made +=
            static_cast<char>(std::strtol(std::string(left_.substr(0, 4)).c_str(), nullptr, 16));
        left_.remove_prefix(4);
      }
    }
  }
  Json value() {
    Json made;
    if (take("null")) return made;
    const bool is_true = take("true");
    if (is_true || take("false")) {
      made.type = Json::Type::kBool;
      made.i = is_true;
    } else if (take("\"")) {
      made.type = Json::Type::kString;
      made.text = string();
    } else if (const bool is_map = take("{"); is_map || take("[")) {
      const char* end = is_map ? "}" : "]";
      made.type = is_map ? Json::Type::kMap : Json::Type::kList;
      while (!take(end)) {
        if (!made.items.empty()) expect(take(","));
        if (is_map) {
          expect(take("\""));
          made.names.push_back(string());
          expect(take(":"));
        }
        made.items.push_back(value());
      }
    } else {
      number(made);
    }
    return made;
  }
  void number(Json& made) {
    const size_t size = std::min(left_.find_first_of(",]} \n"), left_.size());
    const std::string word(left_.substr(0, size));
    left_.remove_prefix(size);
    char* end = nullptr;
    errno = 0;
    made.type = Json::Type::kInt;
    made.i = std::strtoll(word.c_str(), &end, 10);
    if (errno == ERANGE && *end == '\0') {
      throw Failure("bridge: expected a number of 64 bits, got " + word, LAMELLA_VALUE_ERROR);
    }
    if (*end != '\0') {
      made.type = Json::Type::kDouble;
      made.d = std::strtod(word.c_str(), &end);
    }
    expect(!word.empty() && *end == '\0');
  }
  std::string_view left_;
};

}  // namespace lamella::bridge
