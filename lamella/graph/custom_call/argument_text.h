// Scans an operator's arguments without knowing their types. Internal to custom_call.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/abi/abi.h"
#include "lamella/core/complex.h"
#include "lamella/schema/type.h"

namespace lamella::hlo {

struct Item {
  enum class Kind : uint8_t { Operand, Int, Real, Complex, String, Word, List };
  Kind kind = Kind::Word;
  size_t at = 0;           // its position in the text
  std::string text;        // as it was written
  int64_t integer = 0;     // the value of an Int, or the number of an Operand
  double real = 0;         // Real
  complex<double> number;  // Complex
  std::string string;      // String without quotes; Word
  std::vector<Item> elements;

  bool is_word(std::string_view word) const { return kind == Kind::Word && string == word; }
};
struct NamedItem {
  std::string name;  // empty: by position
  Item item;
};

// Scans "(%0, [1, 2], alpha=2.5)"; the parentheses are optional. Calls `fail(position, message)` on
// errors, which must throw.
std::vector<NamedItem> scan_arguments(std::string_view text,
                                      const std::function<void(size_t, const std::string&)>& fail);

// The text of a value without operands, in the form that scan_arguments reads. Throws a TypeError
// for values that have no such form.
std::string argument_text(const lamella_value& value, SchemaType type);

}  // namespace lamella::hlo
