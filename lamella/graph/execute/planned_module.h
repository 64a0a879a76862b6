// A program as it is run, as a module.
#pragma once
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lamella/graph/execute/region.h"

namespace lamella::hlo {

// One computation that is run step by step.
struct PlannedComputation {
  const Computation* computation;
  std::vector<ScheduledStep> steps;
};
// What is known of a region's code.
struct RegionFacts {
  int64_t temporary_bytes;
  // The instructions that each of its loops and calls writes, in their order.
  std::span<const std::vector<std::string>> loops;
  // Arrays of the outputs that may lie where an operand was that ends here: (array, operand).
  std::vector<std::pair<int64_t, int64_t>> shared;
};

// The module whose instructions are the steps of a program, in their order (is_scheduled), entry
// first: a region is a fusion of kind kCustom, with `temporary_bytes` among its frontend attributes
// and the memory that it may reuse as output_to_operand_aliasing; each loop in it is a fusion of
// kind kLoop, which computes again what it does not find in memory. `regions` are those of all
// computations in their order. Constants are those of the program, which must live as long.
std::unique_ptr<Module> planned_module(const Module& program,
                                       std::span<const PlannedComputation> computations,
                                       std::span<const RegionFacts> regions);

}  // namespace lamella::hlo
