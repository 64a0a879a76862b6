// Frame: what all parts of a region's code share: the emitter, reusable temporary memory, and early
// returns from the function.
#pragma once
#include <cstdint>
#include <vector>

#include "lamella/graph/compiler/emitter.h"
#include "lamella/graph/execute/memory_plan.h"

namespace lamella::hlo::compiler {

struct Frame {
  Frame(llvm::Module& module, int vector_bytes, bool on_device = false);
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // Arrays up to this size are on the stack.
  static constexpr int64_t kSmallBytes = 512;

  // Memory for an array, or for all arrays of a value.
  Place temporary(const Shape& shape);
  std::vector<Place> temporaries(const Shape& shape);
  void give_back(const std::vector<Place>& places);
  // Emits a return from the function if the condition, an i32, is not 0.
  void return_if(llvm::Value* failed);

  Emitter e;
  MemoryPlan memory;
  bool may_fail = false;     // true if a return_if() was emitted
  int64_t first_output = 0;  // number of the first buffer that is not an input
};

}  // namespace lamella::hlo::compiler
