// Cost: the operations and memory traffic of an instruction, estimated from its shapes.
#pragma once
#include <unordered_map>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Note [Costs]
//   Each addition, multiplication, comparison, conversion or other simple operation on one element
//   counts as one flop; complex operations count as the equivalent real ones. Functions such as exp
//   are counted separately, as transcendentals. Bytes are those of operands and results, each
//   counted once; for a fusion, only its own operands and results. A called computation counts once
//   per execution: a reduction's computation once per input element; a loop's body and condition
//   once, because the trip count is unknown; a conditional counts its most expensive branch.
struct Cost {
  double flops = 0;
  double transcendentals = 0;
  double bytes = 0;  // read and written

  Cost& operator+=(const Cost& other) {
    flops += other.flops;
    transcendentals += other.transcendentals;
    bytes += other.bytes;
    return *this;
  }
};

// The costs of all instructions and computations of a module.
class Costs {
 public:
  explicit Costs(const Module& module);
  const Cost& of(const Instruction& instruction) const { return instructions_.at(&instruction); }
  // The sum over the computation's instructions.
  const Cost& of(const Computation& computation) const { return computations_.at(&computation); }

 private:
  Cost cost_of(const Instruction& i) const;

  std::unordered_map<const Instruction*, Cost> instructions_;
  std::unordered_map<const Computation*, Cost> computations_;
};

}  // namespace lamella::hlo
