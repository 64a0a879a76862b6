// The words of an operator's arguments, before their types are known. Internal to custom_call.
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
  size_t at = 0;           // its place in the text
  std::string text;        // as it was written
  int64_t integer = 0;     // Int; of an Operand its number
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

// "(%0, [1, 2], alpha=2.5)", parentheses or not. `fail(place, what)` must throw.
std::vector<NamedItem> scan_arguments(std::string_view text,
                                      const std::function<void(size_t, const std::string&)>& fail);

// A value without operands, as scan_arguments reads it. Throws a TypeError for one that it does
// not.
std::string argument_text(const lamella_value& value, SchemaType type);

}  // namespace lamella::hlo
