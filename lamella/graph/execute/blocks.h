// Blocks: adjacent calls of elementwise operators as one step.
//
// Note [Blocks]
//   A call of an operator processes whole arrays, so a chain of calls streams large arrays through
//   memory once per call. Without machine code, adjacent calls of elementwise operators with equal
//   element counts are therefore one step: a few thousand elements pass through all calls before
//   the next ones do, and intermediate results stay in the cache. An operator is elementwise if it
//   has the tag `pointwise`, so operators of other libraries take part.
#pragma once
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "lamella/graph/custom_call/operator_call.h"
#include "lamella/graph/execute/region.h"

namespace lamella::hlo {

using PreparedCalls = std::unordered_map<const Instruction*, PreparedCall*>;

// Joins adjacent calls among the steps to regions that have `blocks` set.
void join_blocks(std::vector<ScheduledStep>& steps, const PreparedCalls& calls);

// A region of joined calls, ready to run.
class Blocks {
 public:
  Blocks(const Region& region, const PreparedCalls& calls);
  // `buffers` has the arrays of the inputs, then those of the outputs. Throws what an operator
  // throws.
  void run(void* const* buffers) const;
  // True if an output may take over the memory of an input.
  static bool may_share(const Instruction& output, const Instruction& input);

 private:
  struct Call {
    const ElementwiseCall* call;
    std::vector<uint32_t> operands;  // places
    std::vector<uint32_t> ends;      // places that no later call reads
    int32_t output = -1;             // number of the region's output; -1: none
  };
  struct Input {
    ScalarType type;
    bool is_number;  // a scalar, for all elements
    size_t bytes;    // of an element
  };
  void run_block(void* const* buffers, int64_t first, int64_t last) const;

  std::vector<Input> inputs_;  // places 0 and up; results of calls follow
  std::vector<Call> calls_;
  std::vector<size_t> output_bytes_;  // of an element
  int64_t elements_ = 0;
};

}  // namespace lamella::hlo
