// What element types are to tensors and to NumPy.
#include "lamella/graph/hlo/element_type.h"

namespace lamella::hlo {

std::optional<ElementType> element_from_name(std::string_view name) {
  for (size_t i = 1; i < ElementTable::kCount; ++i) {
    if (kElementTable.rows[i].name == name) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

ElementType part_of_complex(ElementType type) {
  if (type == ElementType::C64) return ElementType::F32;
  return type == ElementType::C128 ? ElementType::F64 : ElementType::Invalid;
}
ElementType complex_of_part(ElementType type) {
  if (type == ElementType::F32) return ElementType::C64;
  return type == ElementType::F64 ? ElementType::C128 : ElementType::Invalid;
}

std::optional<ScalarType> scalar_type_of(ElementType type) {
  ScalarType scalar = element_row(type).scalar;
  return scalar == ScalarType::Undefined ? std::nullopt : std::optional(scalar);
}

std::string numpy_name(ElementType type) {
  if (auto scalar = scalar_type_of(type)) return dtype_name(*scalar);
  std::string bits = str(element_bits(type));
  switch (element_kind(type)) {
    case ElementKind::Signed:
      return "int" + bits;
    case ElementKind::Unsigned:
      return "uint" + bits;
    default:  // "f8e4m3"
      return str("float", bits, "_", element_name(type).substr(1 + bits.size()));
  }
}

std::optional<ElementType> element_from_numpy_name(std::string_view name) {
  for (size_t i = 1; i < ElementTable::kCount; ++i) {
    auto type = static_cast<ElementType>(i);
    if (is_array_type(type) && numpy_name(type) == name) return type;
  }
  return std::nullopt;
}

}  // namespace lamella::hlo
