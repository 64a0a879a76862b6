// ElementType: the type of an HLO array's elements. Generated from element_type.def.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lamella/core/scalar_type.h"

namespace lamella::hlo {

// The values are XLA's PrimitiveType numbers, which its FFI uses as well.
enum class ElementType : uint8_t {
  Invalid = 0,
#define LAMELLA_HLO_ELEMENT(name, text, number, ...) name = number,
#include "lamella/graph/hlo/element_type.def"
};
enum class ElementKind : uint8_t { Predicate, Signed, Unsigned, Float, Complex, Other };
// lamella::detail::FloatSpecials, and Powers: no sign and no mantissa, thus powers of two alone.
enum class SpecialCodes : uint8_t { Ieee, Finite, OneZero, None, Powers };

struct ElementRow {
  std::string_view name = "invalid";
  int bits = 0;
  ElementKind kind = ElementKind::Other;
  ScalarType scalar = ScalarType::Undefined;
  int mantissa_bits = 0;
  int bias = 0;
  SpecialCodes specials = SpecialCodes::None;
};
// By number.
struct ElementTable {
  static constexpr size_t kCount = [] {
    size_t most = 0;
#define LAMELLA_HLO_ELEMENT(name, text, number, ...) most = most < number ? number : most;
#include "lamella/graph/hlo/element_type.def"
    return most + 1;
  }();
  ElementRow rows[kCount];
};
inline constexpr ElementTable kElementTable = [] {
  ElementTable table{};
#define LAMELLA_HLO_ELEMENT(name, text, number, bits, kind, scalar, mantissa, bias, specials) \
  table.rows[number] = {text,     bits, ElementKind::kind,     ScalarType::scalar,            \
                        mantissa, bias, SpecialCodes::specials};
#include "lamella/graph/hlo/element_type.def"
  return table;
}();
constexpr const ElementRow& element_row(ElementType type) {
  return kElementTable.rows[static_cast<size_t>(type)];
}

// "f32"; "invalid" for Invalid.
constexpr std::string_view element_name(ElementType type) { return element_row(type).name; }
std::optional<ElementType> element_from_name(std::string_view name);
constexpr ElementKind element_kind(ElementType type) { return element_row(type).kind; }
// Bits of the format; PRED counts as 8, tuples and tokens as 0.
constexpr int element_bits(ElementType type) { return element_row(type).bits; }
// Bytes that one element takes in an array of ours: types below a byte take one.
constexpr int element_bytes(ElementType type) { return (element_bits(type) + 7) / 8; }

inline bool is_integral(ElementType type) {
  ElementKind kind = element_kind(type);
  return kind == ElementKind::Signed || kind == ElementKind::Unsigned;
}
constexpr bool is_floating(ElementType type) { return element_kind(type) == ElementKind::Float; }
// The floating-point formats of a byte and less.
constexpr bool is_small_float(ElementType type) {
  return element_kind(type) == ElementKind::Float && element_bits(type) <= 8;
}
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
constexpr ElementType element_type_of(ScalarType type) {
  for (size_t i = 1; i < ElementTable::kCount && type != ScalarType::Undefined; ++i) {
    if (kElementTable.rows[i].scalar == type) return static_cast<ElementType>(i);
  }
  return ElementType::Invalid;
}
constexpr bool is_ordinary_float(ElementType type) {
  return is_floating(type) && !is_small_float(type);
}
// Whether operators compute on tensors of the type: those of a byte and less are only converted.
constexpr bool has_kernels(ElementType type) {
  return element_row(type).scalar != ScalarType::Undefined && !is_small_float(type);
}
// "float32", "bfloat16", "float8_e4m3b11fnuz", "int4": the name in NumPy and ml_dtypes.
std::string numpy_name(ElementType type);
std::optional<ElementType> element_from_numpy_name(std::string_view name);

}  // namespace lamella::hlo
