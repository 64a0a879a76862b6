// at::native::fastAtomicAdd, and CUDA_KERNEL_LOOP.
#pragma once
#include <ATen/cuda/detail/KernelUtils.h>
#include <ATen/cuda/Atomic.cuh>

namespace at::native {
// Adds to one of an array's `count` elements; pairs of small floats are not needed for it.
template <class T, class Index>
__device__ inline void fastAtomicAdd(T* data, Index index, const Index, T value, bool = true) {
  gpuAtomicAddNoReturn(data + index, value);
}
}  // namespace at::native
