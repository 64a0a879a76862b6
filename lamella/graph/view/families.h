// Names and colours of the families of opcodes, and short texts of shapes.
#pragma once
#include <string_view>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

struct FamilyLook {
  const char* name;    // "elementwise"
  const char* fill;    // "#e4ecf7", for a light background
  const char* stroke;  // and its dark partner
};

const FamilyLook& look_of(Family family);
inline constexpr int kFamilyCount = 11;

// "(f32[2], s32[])": the text of a shape without layouts, truncated to this number of letters.
std::string short_shape(const Shape& shape, size_t letters = 40);

}  // namespace lamella::hlo
