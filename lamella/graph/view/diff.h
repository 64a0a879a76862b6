// What differs between two modules.
#pragma once
#include <cstdint>
#include <string>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Note [Comparing modules]
//   Instructions are equal where opcode, shape, attributes, literal and operands are, whatever
//   their names; metadata does not count. Equal expressions are found from the operands up. What is
//   left is paired from there: the same instruction with other operands, then the same name, then
//   users of the same values. A pair that is not equal is a change; what has no partner was removed
//   or added. Computations are compared where they are called.
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

// From `before` to `after`.
Difference compare(const Module& before, const Module& after);
// The text of it, with the end of its last line.
std::string difference(const Module& before, const Module& after);

}  // namespace lamella::hlo
