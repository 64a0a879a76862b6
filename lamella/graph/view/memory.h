// Memory: the memory use of a program, computed from the order of its instructions.
#pragma once
#include <unordered_map>
#include <vector>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Note [Memory of a schedule]
//   In a scheduled module each array has memory from its producer to its last use, and results have
//   memory to the end. Parameters and constants are not counted, because they exist before the run.
//   Tuples share the memory of their elements, a loop's state stays in place, and a result that
//   aliases an operand (output_to_operand_aliasing) uses the operand's memory. During an
//   instruction, its stated `temporary_bytes` and the peak of its loop body, branch or called
//   computation are added. Memory that an operator allocates internally is unknown.
class Memory {
 public:
  // The instructions of the module's computations must be in the order in which they run.
  explicit Memory(const Module& module);
  // Bytes in use while an instruction runs; 0 for instructions inside a single step, such as a
  // fusion.
  int64_t during(const Instruction& instruction) const;
  // The maximum over the entry computation.
  int64_t peak() const { return peak_; }

 private:
  int64_t add(const Computation& computation);

  std::unordered_map<const Computation*, std::vector<int64_t>> during_;
  int64_t peak_ = 0;
};

}  // namespace lamella::hlo
