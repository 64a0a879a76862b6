// at::Philox4_32: numbers by their position, from a seed, a subsequence and an offset in units of
// four; and at::mt19937.
#pragma once
#include <c10/lamella_names.h>

#include <cmath>
#include <random>

#include "lamella/core/philox.h"

namespace at {
using std::mt19937;

class philox_engine {
 public:
  explicit philox_engine(uint64_t seed = 67280421310721, uint64_t subsequence = 0,
                         uint64_t offset = 0) {
    reset_state(seed, subsequence);
    incr_n(offset);
  }
  void reset_state(uint64_t seed = 67280421310721, uint64_t subsequence = 0) {
    seed_ = seed;
    subsequence_ = subsequence;
    index_ = 0;
    next_ = 0;
  }
  void set_offset(uint64_t offset) { index_ = offset; }
  uint64_t get_offset() const { return index_; }
  uint32_t operator()() {
    if (next_ == 0) {
      words_ = lamella::philox(seed_, subsequence_, index_);
      incr();
    }
    const uint32_t word = words_.word[next_];
    next_ = (next_ + 1) % 4;
    return word;
  }
  // A normal number of two words by the Box-Muller transform, after passing `count` words over.
  float randn(uint32_t count) {
    while (count-- > 0) (*this)();
    const float u1 = uniform(), u2 = uniform();
    return std::sqrt(-2.0f * std::log1p(-u1)) * std::cos(2.0f * 3.14159265358979f * u2);
  }
  // Moves on by units of four numbers. Offset and subsequence are one counter.
  void incr_n(uint64_t count) {
    index_ += count;
    subsequence_ += index_ < count ? 1 : 0;
  }
  void incr() { incr_n(1); }

 private:
  float uniform() { return static_cast<float>((*this)() >> 8) * 0x1p-24f; }

  uint64_t seed_, subsequence_, index_;
  lamella::PhiloxWords words_;
  uint32_t next_;
};
using Philox4_32 = philox_engine;

}  // namespace at
