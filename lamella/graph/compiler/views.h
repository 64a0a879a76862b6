// Views: arrays that are another one's elements in other places, as strides say.
#pragma once
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo::compiler {

// Element (i, j, ...) of an instruction is element i * strides[0] + j * strides[1] + ... of `base`.
struct View {
  const Instruction* base;
  std::vector<int64_t> strides;
};
// The strides of an array of this shape whose elements lie row by row.
std::vector<int64_t> dense_strides(const Shape& shape);
// Looks through transposes, and through reshapes as far as strides can say them, of instructions
// that are `inside`.
View view_of(const Instruction* i, const std::unordered_set<const Instruction*>& inside);

}  // namespace lamella::hlo::compiler
