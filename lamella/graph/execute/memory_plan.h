// MemoryPlan: a first-fit allocator of temporary memory, in offsets that are multiples of 64 bytes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>

namespace lamella::hlo {

class MemoryPlan {
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

}  // namespace lamella::hlo
