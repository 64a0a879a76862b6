// Frame: what all parts of a region's code share: the emitter, reusable temporary memory, and early
// returns from the function.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "lamella/graph/compiler/emitter.h"

namespace lamella::hlo::compiler {

// First-fit allocator of temporary memory, in offsets that are multiples of 64 bytes.
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
  // Memory that is never reused: it overlaps no other allocation, earlier or later.
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
  Memory memory;
  bool may_fail = false;     // true if a return_if() was emitted
  int64_t first_output = 0;  // number of the first buffer that is not an input
};

}  // namespace lamella::hlo::compiler
