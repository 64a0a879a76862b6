// Facts of element types by XLA's names (its primitive_util.h).
#pragma once
#include <string>

#include "lamella/graph/builder/status.h"
#include "lamella/graph/builder/types.h"
#include "lamella/graph/hlo/native_type.h"

namespace lamella::hlo::primitive_util {

using hlo::NativeToPrimitiveType;
inline bool IsArrayType(PrimitiveType type) { return is_array_type(type); }
inline bool IsFloatingPointType(PrimitiveType type) { return is_floating(type); }
inline bool IsComplexType(PrimitiveType type) { return is_complex(type); }
inline bool IsIntegralType(PrimitiveType type) { return is_integral(type); }
inline bool IsSignedIntegralType(PrimitiveType type) {
  return element_kind(type) == ElementKind::Signed;
}
inline bool IsUnsignedIntegralType(PrimitiveType type) {
  return element_kind(type) == ElementKind::Unsigned;
}
inline int BitWidth(PrimitiveType type) { return element_bits(type); }
inline int ByteWidth(PrimitiveType type) { return element_bytes(type); }
// The bits of the significand, with the one that is not stored.
inline int SignificandWidth(PrimitiveType type) { return element_row(type).mantissa_bits + 1; }
inline int ExponentWidth(PrimitiveType type) {
  return element_bits(type) - 1 - element_row(type).mantissa_bits;
}
inline PrimitiveType ComplexComponentType(PrimitiveType type) { return part_of_complex(type); }
inline PrimitiveType ComplexType(PrimitiveType type) { return complex_of_part(type); }
inline PrimitiveType UnsignedIntegralTypeForBitWidth(int64_t bits) {
  return element_from_name("u" + std::to_string(bits)).value_or(PrimitiveType::Invalid);
}
inline PrimitiveType SignedIntegralTypeForBitWidth(int64_t bits) {
  return element_from_name("s" + std::to_string(bits)).value_or(PrimitiveType::Invalid);
}
inline std::string LowercasePrimitiveTypeName(PrimitiveType type) {
  return std::string(element_name(type));
}
inline StatusOr<PrimitiveType> StringToPrimitiveType(std::string_view name) {
  if (auto type = element_from_name(name)) return *type;
  return Status(StatusCode::kInvalidArgument,
                "StringToPrimitiveType: expected an element type, got '" + std::string(name) + "'");
}
inline bool IsPrimitiveTypeName(std::string_view name) {
  return element_from_name(name).has_value();
}

}  // namespace lamella::hlo::primitive_util
