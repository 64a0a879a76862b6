// Blocks: neighbouring calls of elementwise operators as one step.
//
// Note [Blocks]
//   A call of an operator goes over whole arrays, so a chain of calls takes large arrays through
//   memory once for each. Where no machine code is made, neighbouring calls of elementwise
//   operators over as many elements are one step: a few thousand elements go through all calls
//   before the next ones do, and what lies between two calls stays in the cache. Which operators
//   are elementwise is what their tag `pointwise` says, so those of other libraries take part.
#pragma once
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "lamella/graph/custom_call/operator_call.h"
#include "lamella/graph/execute/region.h"

namespace lamella::hlo {

using PreparedCalls = std::unordered_map<const Instruction*, PreparedCall*>;

// Joins neighbouring calls among the steps to regions with `blocks` set.
void join_blocks(std::vector<ScheduledStep>& steps, const PreparedCalls& calls);

// Such a region, ready to run.
class Blocks {
 public:
  Blocks(const Region& region, const PreparedCalls& calls);
  // The arrays of the region's inputs, then those of its outputs. Throws what an operator throws.
  void run(void* const* buffers) const;
  // Whether an output may lie in the memory of an input, which it takes the place of.
  static bool may_share(const Instruction& output, const Instruction& input);

 private:
  struct Call {
    const ElementwiseCall* call;
    std::vector<uint32_t> operands;  // places
    std::vector<uint32_t> ends;      // places that no later call reads
    int32_t output = -1;             // which of the region's outputs it is; -1: none
  };
  struct Input {
    ScalarType type;
    bool is_number;  // one for all elements
    size_t bytes;    // of an element
  };
  void run_block(void* const* buffers, int64_t first, int64_t last) const;

  std::vector<Input> inputs_;  // places 0 and up; behind them the calls'
  std::vector<Call> calls_;
  std::vector<size_t> output_bytes_;  // of an element
  int64_t elements_ = 0;
};

}  // namespace lamella::hlo
