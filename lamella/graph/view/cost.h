// Cost: how much an instruction computes and moves, estimated from its shapes alone.
#pragma once
#include <unordered_map>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Note [Costs]
//   One for each addition, multiplication, comparison, conversion or other simple operation on one
//   element; complex elements count as the real operations they stand for. Functions such as exp
//   are counted apart, as transcendentals. Bytes moved are those of operands read and results
//   written, each once; of a fusion only what goes in and comes out. What is called counts once for
//   each time it runs: a reduction's computation for each element it takes in, a loop's body and
//   condition once, since nobody knows how often; of a conditional's branches the dearest.
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

// The costs of a module's instructions and computations, worked out once.
class Costs {
 public:
  explicit Costs(const Module& module);
  const Cost& of(const Instruction& instruction) const { return instructions_.at(&instruction); }
  // The sum over its instructions.
  const Cost& of(const Computation& computation) const { return computations_.at(&computation); }

 private:
  Cost cost_of(const Instruction& i) const;

  std::unordered_map<const Instruction*, Cost> instructions_;
  std::unordered_map<const Computation*, Cost> computations_;
};

}  // namespace lamella::hlo
