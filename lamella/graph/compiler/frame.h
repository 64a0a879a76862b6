// Frame: what the parts of a region's code have in common: the emitter, memory that is free again
// after use, and the way out of the function.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "lamella/graph/compiler/emitter.h"

namespace lamella::hlo::compiler {

// Temporary memory: the first free bytes that are enough.
class Memory {
 public:
  int64_t take(int64_t bytes) {
    bytes = std::max<int64_t>(64, (bytes + 63) / 64 * 64);
    int64_t at = 0;
    for (auto [first, size] : taken_) {
      if (first - at >= bytes) break;
      at = first + size;
    }
    taken_.emplace(at, bytes);
    most_ = std::max(most_, at + bytes);
    return at;
  }
  // Memory that nothing else lies in, before or after.
  int64_t take_for_ever(int64_t bytes) {
    int64_t at = most_;
    bytes = (bytes + 63) / 64 * 64;
    taken_.emplace(at, bytes);
    most_ = at + bytes;
    return at;
  }
  void give_back(int64_t at) { taken_.erase(at); }
  int64_t most() const { return most_; }

 private:
  std::map<int64_t, int64_t> taken_;
  int64_t most_ = 0;
};

struct Frame {
  Frame(llvm::Module& module, int vector_bytes);
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // Arrays up to this size lie on the stack.
  static constexpr int64_t kSmallBytes = 512;

  // Memory for an array, or for all arrays of a value.
  Place temporary(const Shape& shape);
  std::vector<Place> temporaries(const Shape& shape);
  void give_back(const std::vector<Place>& places);
  // Returns from the function where the condition, an i32, is not 0.
  void return_if(llvm::Value* failed);

  Emitter e;
  Memory memory;
  int64_t first_output = 0;  // number of the first buffer that is no input
};

}  // namespace lamella::hlo::compiler
