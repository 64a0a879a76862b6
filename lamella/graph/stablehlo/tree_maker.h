// TreeMaker: makes the values, types and attributes of a tree. Internal to
// lamella/graph/stablehlo.
#pragma once
#include <unordered_map>

#include "lamella/graph/hlo/literal.h"
#include "lamella/graph/stablehlo/operation.h"

namespace lamella::hlo::stablehlo {

class TreeMaker {
 public:
  explicit TreeMaker(Arena& arena) : arena_(arena) {}

  const Type* type(const Shape& shape);
  const Type* tensor(ElementType element, std::vector<int64_t> sizes);
  Value* value(const Type* type);

  const Attribute* boolean(bool value);
  const Attribute* integer(int64_t value, ElementType type = ElementType::S64);
  const Attribute* real(double value);  // of 32 bits
  const Attribute* string(std::string_view text) { return text_of(Attribute::Kind::String, text); }
  // An enumerator, by its name.
  const Attribute* word(std::string_view text) { return text_of(Attribute::Kind::Word, text); }
  const Attribute* list(std::vector<const Attribute*> parts);
  const Attribute* dictionary(std::vector<Named> entries);
  const Attribute* type_of(const Type* type);
  // A vector of integers, and a matrix of rows.
  const Attribute* integers(std::span<const int64_t> numbers);
  const Attribute* matrix(std::span<const int64_t> numbers, int64_t rows, int64_t columns);
  const Attribute* booleans(const std::vector<bool>& values);
  const Attribute* elements(const Literal& literal);
  // Dimensions from the fastest varying to the slowest, as a vector of type index.
  const Attribute* layout(std::span<const int64_t> order);

  Arena& arena() { return arena_; }

 private:
  const Attribute* text_of(Attribute::Kind kind, std::string_view text);
  Attribute* made(Attribute::Kind kind);
  Arena& arena_;
};

}  // namespace lamella::hlo::stablehlo
