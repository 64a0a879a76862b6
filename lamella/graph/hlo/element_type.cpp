// Names and sizes of element types.
#include "lamella/graph/hlo/element_type.h"

#include <array>

namespace lamella::hlo {
namespace {

struct Row {
  std::string_view name = "invalid";
  int bits = 0;
  ElementKind kind = ElementKind::Other;
};
constexpr size_t kRows = 34;

constexpr std::array<Row, kRows> make_rows() {
  std::array<Row, kRows> rows{};
#define LAMELLA_HLO_ELEMENT(name, text, number, bits, kind) \
  rows[number] = Row{text, bits, ElementKind::kind};
#include "lamella/graph/hlo/element_type.def"
  return rows;
}
constexpr std::array<Row, kRows> kTable = make_rows();

const Row& row(ElementType type) { return kTable[static_cast<size_t>(type)]; }

}  // namespace

std::string_view element_name(ElementType type) { return row(type).name; }
ElementKind element_kind(ElementType type) { return row(type).kind; }
int element_bits(ElementType type) { return row(type).bits; }
int element_bytes(ElementType type) { return (row(type).bits + 7) / 8; }

std::optional<ElementType> element_from_name(std::string_view name) {
  for (size_t i = 1; i < kRows; ++i) {
    if (kTable[i].name == name) return static_cast<ElementType>(i);
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
  switch (type) {
    case ElementType::PRED:
      return ScalarType::Bool;
    case ElementType::S8:
      return ScalarType::Char;
    case ElementType::S16:
      return ScalarType::Short;
    case ElementType::S32:
      return ScalarType::Int;
    case ElementType::S64:
      return ScalarType::Long;
    case ElementType::U8:
      return ScalarType::Byte;
    case ElementType::U16:
      return ScalarType::UInt16;
    case ElementType::U32:
      return ScalarType::UInt32;
    case ElementType::U64:
      return ScalarType::UInt64;
    case ElementType::F16:
      return ScalarType::Half;
    case ElementType::F32:
      return ScalarType::Float;
    case ElementType::F64:
      return ScalarType::Double;
    case ElementType::BF16:
      return ScalarType::BFloat16;
    case ElementType::C64:
      return ScalarType::ComplexFloat;
    case ElementType::C128:
      return ScalarType::ComplexDouble;
    case ElementType::F8E5M2:
      return ScalarType::Float8_e5m2;
    case ElementType::F8E4M3FN:
      return ScalarType::Float8_e4m3fn;
    default:
      return std::nullopt;
  }
}
ElementType element_type_of(ScalarType type) {
  for (size_t i = 1; i < kRows; ++i) {
    if (scalar_type_of(static_cast<ElementType>(i)) == type) return static_cast<ElementType>(i);
  }
  return ElementType::Invalid;
}

}  // namespace lamella::hlo
