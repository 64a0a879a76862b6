// The parameters of the kernels of matrix products.
#pragma once
#include <cstdint>

namespace lamella::cuda {

struct MatmulOperand {
  uint64_t data;
  int64_t row, column, batch;  // strides in elements
};
struct MatmulParameters {
  MatmulOperand a, b, c, d;  // d without data is not read
  int64_t m, n, k, batch;
  int32_t relu;
  alignas(16) char alpha[16], beta[16];  // in the type of sums
};

inline constexpr int kMatmulTile = 64, kMatmulSlice = 16, kMatmulThreads = 256;

}  // namespace lamella::cuda
