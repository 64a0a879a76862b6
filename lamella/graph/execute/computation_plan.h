// ComputationPlan: the steps of a computation over numbered places; see Note [Steps] in
// executor.cpp.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lamella/graph/custom_call/call.h"
#include "lamella/graph/evaluate/rules.h"
#include "lamella/graph/execute/blocks.h"
#include "lamella/graph/execute/machine_code.h"

namespace lamella::hlo {

struct StepOperand {
  uint32_t place;
  bool ends;  // this step is the last use of the place
};
// A value that a region returns, and the place that it is written to.
struct RegionOutput {
  const Shape* shape;
  uint32_t place;
};
struct OutputLeaf {
  const Shape* shape;
  size_t bytes;
  int32_t shared_operand;  // operand whose memory it may take over; -1: none
};
struct PlannedRegion {
  std::string name;
  MachineCode::Function function = nullptr;
  std::unique_ptr<const Blocks> blocks;  // if there is no function
  size_t temporary_bytes = 0;
  uint32_t input_leaves;
  std::vector<OutputLeaf> output_leaves;
  std::vector<RegionOutput> outputs;
};
struct PlannedStep {
  const Instruction* instruction = nullptr;
  Rule rule = nullptr;
  PreparedCall* call = nullptr;           // for custom calls
  const PlannedRegion* region = nullptr;  // for regions
  uint32_t first_operand = 0;
  uint32_t operand_count = 0;
  uint32_t result = 0;
  bool unused = false;  // the result is not read; the step runs for its effect
};
struct ComputationPlan {
  std::vector<PlannedStep> steps;
  std::vector<StepOperand> operands;
  std::vector<std::pair<uint32_t, Value>> constants;  // place, value
  std::vector<uint32_t> parameters;                   // places, by number
  std::vector<std::unique_ptr<PlannedRegion>> regions;
  uint32_t places = 0;
  uint32_t root = 0;
  uint32_t most_operands = 0;
};

inline uint32_t place_of(const Instruction* i) { return static_cast<uint32_t>(i->index); }

// Finds the last use of every place, from the last step to the first.
inline void find_ends(ComputationPlan& plan) {
  std::vector<bool> read(plan.places, false);
  read[plan.root] = true;
  for (size_t s = plan.steps.size(); s-- > 0;) {
    PlannedStep& step = plan.steps[s];
    if (step.region == nullptr) step.unused = !read[step.result];
    for (size_t o = step.operand_count; o-- > 0;) {
      StepOperand& operand = plan.operands[step.first_operand + o];
      operand.ends = !read[operand.place];
      read[operand.place] = true;
    }
  }
}

}  // namespace lamella::hlo
