// DLPack's code of each dtype that it has.
#pragma once
#include "lamella/core/dlpack_structs.h"
#include "lamella/core/scalar_type.h"

namespace lamella::dlpack {

// The bits of a type follow from the dtype's size; it has one lane.
struct TypeRow {
  ScalarType type;
  DLDataTypeCode code;
};
LAMELLA_HIDDEN inline constexpr TypeRow kTypes[] = {
#define LAMELLA_SCALAR_TYPE(cpp, name, number, text, code, ...) {ScalarType::name, kDL##code},
#include "lamella/core/scalar_type.def"
};

// The row of a dtype, or of a type; null where there is none.
inline constexpr const TypeRow* find_type(ScalarType type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}
inline constexpr const TypeRow* find_type(DLDataType type) {
  for (const TypeRow& row : kTypes) {
    if (row.code == type.code && 8 * element_size(row.type) == type.bits && type.lanes == 1) {
      return &row;
    }
  }
  return nullptr;
}
inline constexpr DLDataType type_of(const TypeRow& row) {
  return {row.code, static_cast<uint8_t>(8 * element_size(row.type)), 1};
}

}  // namespace lamella::dlpack
