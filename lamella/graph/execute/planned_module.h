// planned_module(): the plan by which a program is run, written as a module.
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
// Facts about the code of a region.
struct RegionFacts {
  int64_t temporary_bytes;
  // The instructions that each of its loops and calls writes, in order.
  std::span<const std::vector<std::string>> loops;
  // Pairs (array, operand): an array of the outputs may take over the memory of the operand at its
  // last use.
  std::vector<std::pair<int64_t, int64_t>> shared;
};

// A module whose instructions are the steps of a program in order (is_scheduled), entry first. A
// region is a fusion of kind kCustom, with `temporary_bytes` among its frontend attributes and
// reusable memory as output_to_operand_aliasing. Each loop in it is a fusion of kind kLoop, which
// recomputes values that are not in memory. `regions` has the regions of all computations in order.
// Constants are those of the program, which must outlive the module.
std::unique_ptr<Module> planned_module(const Module& program,
                                       std::span<const PlannedComputation> computations,
                                       std::span<const RegionFacts> regions);

}  // namespace lamella::hlo
