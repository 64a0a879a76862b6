// CUDA_KERNEL_LOOP: the elements of one thread, a grid apart.
#pragma once
#include <c10/util/Exception.h>

#include <limits>

namespace at::cuda::detail {

#define CUDA_KERNEL_LOOP_TYPE(i, n, index_type)                                \
  int64_t lamella_##i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;        \
  for (index_type i = static_cast<index_type>(lamella_##i); lamella_##i < (n); \
       lamella_##i += int64_t{blockDim.x} * gridDim.x, i = static_cast<index_type>(lamella_##i))
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)

constexpr int CUDA_NUM_THREADS = 1024;

// The number of blocks for a thread for each of n elements.
inline int GET_BLOCKS(int64_t n, int64_t threads = CUDA_NUM_THREADS) {
  TORCH_CHECK(n > 0, "GET_BLOCKS: expected elements, got ", n);
  const int64_t blocks = (n - 1) / threads + 1;
  TORCH_CHECK(blocks <= std::numeric_limits<int>::max(),
              "GET_BLOCKS: expected a number of blocks that is an int, got ", blocks);
  return static_cast<int>(blocks);
}

}  // namespace at::cuda::detail
