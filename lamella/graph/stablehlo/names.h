// Types, enumerators and numbers that bytecode and text share. Internal to lamella/graph/stablehlo.
#pragma once
#include <algorithm>
#include <functional>
#include <optional>

#include "lamella/graph/stablehlo/operation.h"

namespace lamella::hlo::stablehlo {

// The signed or unsigned type of this width; pred for one bit.
std::optional<ElementType> integer_type(uint64_t bits, bool is_unsigned);
// The value of an element with these bits.
double real_of_bits(uint64_t bits, ElementType type);
int64_t integer_of_bits(uint64_t bits, ElementType type);
// The shape of a type's values. Calls `fail`, which throws, with the reason if there is none.
Shape shape_of(const Type& type, const std::function<void(const std::string&)>& fail);
// "tensor<2x?xf32>", as StableHLO's text.
std::string type_text(const Type& type);
// StableHLO's name of an element type: "i32", "ui8", "complex<f32>"; and the inverse.
std::string element_text(ElementType type);
std::optional<ElementType> element_from_text(std::string_view text);
// The code of an element type in VHLO's bytecode; -1 if it has none.
int element_code(ElementType type);
std::optional<ElementType> element_of_code(uint64_t code);
// The names of an operation's own attributes in the order of bytecode, by "name_v1". Empty for one
// that the table does not have.
const std::vector<std::string_view>& own_attributes(std::string_view operation);
bool is_operation(std::string_view operation);
// Calls visit(word) for each of the words between blanks.
template <class F>
void for_each_word(std::string_view words, F&& visit) {
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    visit(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}
// The enumerators of the attribute with this code of VHLO's bytecode, by number, with NULL behind
// them; NULL if the code is none's. A number that is not used has an empty name.
const char* const* enumerators(uint64_t code);

}  // namespace lamella::hlo::stablehlo
