// ElementType: the type of an HLO array's elements. Generated from element_type.def.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "lamella/core/scalar_type.h"

namespace lamella::hlo {

// The values are XLA's PrimitiveType numbers, which its FFI uses as well.
enum class ElementType : uint8_t {
  Invalid = 0,
#define LAMELLA_HLO_ELEMENT(name, text, number, bits, kind) name = number,
#include "lamella/graph/hlo/element_type.def"
};
enum class ElementKind : uint8_t { Predicate, Signed, Unsigned, Float, Complex, Other };

// "f32"; "invalid" for Invalid.
std::string_view element_name(ElementType type);
std::optional<ElementType> element_from_name(std::string_view name);
ElementKind element_kind(ElementType type);
// Bits of the format; PRED counts as 8, tuples and tokens as 0.
int element_bits(ElementType type);
// Bytes that one element takes in a Literal or buffer: types narrower than a byte take one.
int element_bytes(ElementType type);

inline bool is_integral(ElementType type) {
  ElementKind kind = element_kind(type);
  return kind == ElementKind::Signed || kind == ElementKind::Unsigned;
}
inline bool is_floating(ElementType type) { return element_kind(type) == ElementKind::Float; }
inline bool is_complex(ElementType type) { return element_kind(type) == ElementKind::Complex; }
inline bool is_array_type(ElementType type) {
  return type != ElementType::Invalid && element_kind(type) != ElementKind::Other;
}
// The type of the real and imaginary parts: F32 for C64, F64 for C128, Invalid for other types;
// and the inverse.
ElementType part_of_complex(ElementType type);
ElementType complex_of_part(ElementType type);

// The tensor ScalarType with the same representation; nullopt if tensors have no such type.
std::optional<ScalarType> scalar_type_of(ElementType type);
ElementType element_type_of(ScalarType type);

}  // namespace lamella::hlo
