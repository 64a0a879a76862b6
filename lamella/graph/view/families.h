// Families of opcodes, for colours.
#pragma once
#include <string_view>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// What an instruction is to somebody who looks at a graph.
enum class Family : uint8_t {
  Parameter,
  Constant,
  Elementwise,
  Movement,     // broadcast, slice, gather, ...: elements in other places
  Reduction,    // reduce, sort, ...
  Contraction,  // dot, convolution, fft, linear algebra
  Control,      // while, call, ...
  Fusion,
  CustomCall,
  Collective,
  Tuple,
};
struct FamilyLook {
  const char* name;    // "elementwise"
  const char* fill;    // "#e4ecf7", for a light background
  const char* stroke;  // and its dark partner
};

Family family_of(const Instruction& instruction);
const FamilyLook& look_of(Family family);
inline constexpr int kFamilyCount = 11;

// "(f32[2], s32[])": a shape without layouts, cut after so many letters.
std::string short_shape(const Shape& shape, size_t letters = 40);

}  // namespace lamella::hlo
