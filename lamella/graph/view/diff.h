// Differences between two modules.
#pragma once
#include <cstdint>
#include <string>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Note [Comparing modules]
//   Instructions are equal if opcode, shape, attributes, literal and operands are equal; names and
//   metadata are ignored. Equal expressions are paired first, from the operands up. The remaining
//   instructions are paired if they are equal except for their operands, then by name, then by
//   their position among the operands of paired users. A pair that is not equal is a change; an
//   instruction without a partner was removed or added. Computations are compared where they are
//   called.
struct Difference {
  int64_t equal = 0;  // instructions
  int64_t changed = 0;
  int64_t removed = 0;
  int64_t added = 0;
  // "equal", "equal up to renaming", or a line for each instruction that differs, by computation:
  //   main.4:
  //     - mul.3 = f32[2]{0} multiply(a, b)
  //     + div.3 = f32[2]{0} divide(a, b)
  //     ~ add.5: shape f32[2]{0} -> f32[3]{0}; operand 1: mul.3 -> div.3
  //   1 removed, 1 added, 1 changed, 4 equal
  std::string text;

  bool same() const { return changed == 0 && removed == 0 && added == 0; }
};

// Compares `before` with `after`.
Difference compare(const Module& before, const Module& after);
// The text of the comparison, with a final newline.
std::string difference(const Module& before, const Module& after);

}  // namespace lamella::hlo
