// at::CPUGeneratorImpl: the CPU's random number generator, drawn from number by number.
#pragma once
#include <ATen/core/Generator.h>
#include <torch/standard_headers.h>

#include "lamella/abi/backend.h"
#include "lamella/core/error.h"

namespace c10::detail {
constexpr uint64_t default_rng_seed_val = 67280421310721;
}
namespace at {
using c10::detail::default_rng_seed_val;

// An independent stream. The numbers for a seed equal those of torch.Generator.
class CPUGeneratorImpl {
 public:
  explicit CPUGeneratorImpl(uint64_t seed = default_rng_seed_val) : seed_(seed) {
    lamella_object* stream = nullptr;
    lamella::detail::check(lamella_generator_make(0, 0, seed, &stream));
    stream_ = lamella::Generator::adopt(stream);
  }
  void set_current_seed(uint64_t seed) {
    lamella::detail::check(lamella_generator_seed(stream_.get(), seed));
    seed_ = seed;
    has_half_ = false;
  }
  uint64_t current_seed() const { return seed_; }
  // 32 random bits: the lower half of the 64 that the stream yields at once.
  uint32_t random() {
    if (has_half_) {
      has_half_ = false;
      return half_;
    }
    uint64_t word = 0;
    lamella::detail::check(lamella_generator_draw(stream_.get(), &word, 1));
    half_ = static_cast<uint32_t>(word);
    has_half_ = true;
    return static_cast<uint32_t>(word >> 32);
  }
  uint64_t random64() {
    uint64_t high = random();
    return (high << 32) | random();
  }

  std::mutex mutex_;

 private:
  lamella::Generator stream_;
  uint64_t seed_;
  uint32_t half_ = 0;
  bool has_half_ = false;
};

}  // namespace at
