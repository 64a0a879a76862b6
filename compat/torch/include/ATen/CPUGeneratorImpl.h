// at::CPUGeneratorImpl: the CPU's random number generator, drawn from number by number.
#pragma once
#include <ATen/core/Generator.h>
#include <torch/standard_headers.h>

namespace c10 {
using GeneratorImpl = lamella::GeneratorObject;
namespace detail {
constexpr uint64_t default_rng_seed_val = lamella::CPUGeneratorImpl::kDefaultSeed;
}
}  // namespace c10
namespace at {
using c10::detail::default_rng_seed_val;
namespace detail {
inline Generator createCPUGenerator(uint64_t seed = default_rng_seed_val) {
  return make_generator<CPUGeneratorImpl>(seed);
}
}  // namespace detail
}  // namespace at
