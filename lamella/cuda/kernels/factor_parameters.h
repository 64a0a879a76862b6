// The parameters of the kernels of factorisations.
#pragma once
#include <cstdint>

namespace lamella::cuda {

inline constexpr int kFactorThreads = 128;

// As native::DeviceFactor, with addresses of the device.
struct FactorParameters {
  uint64_t a, b, pivots, info;
  int64_t count;
  int32_t m, n, k, upper, op;
};

}  // namespace lamella::cuda
