// Views: arrays whose elements are those of another array, at other strides.
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
// The strides of a contiguous array of this shape.
std::vector<int64_t> dense_strides(const Shape& shape);
// The view through transposes, and reshapes that strides can express, of instructions in `inside`.
View view_of(const Instruction* i, const std::unordered_set<const Instruction*>& inside);

}  // namespace lamella::hlo::compiler
