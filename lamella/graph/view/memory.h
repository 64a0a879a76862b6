// Memory: what a program needs while it runs, from the order of its instructions.
#pragma once
#include <unordered_map>
#include <vector>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Note [Memory of a schedule]
//   In a module that is scheduled each array has memory from the instruction that makes it to the
//   last one that reads it, and the results to the end. Parameters and constants are not counted:
//   they are there before. Elements of tuples are the arrays themselves, a loop's state stays where
//   it is, and what an instruction writes where an operand was (output_to_operand_aliasing) is that
//   operand's memory. To these
//   come the `temporary_bytes` that an instruction states and, while it runs, what a loop's body, a
//   branch or a called computation needs at most. What an operator takes for itself is not known.
class Memory {
 public:
  // The module must be one in whose computations the instructions run one after the other.
  explicit Memory(const Module& module);
  // Bytes that are in use while an instruction runs; 0 inside of what is one step itself.
  int64_t during(const Instruction& instruction) const;
  // The largest of these in the entry computation.
  int64_t peak() const { return peak_; }

 private:
  int64_t add(const Computation& computation);

  std::unordered_map<const Computation*, std::vector<int64_t>> during_;
  int64_t peak_ = 0;
};

}  // namespace lamella::hlo
