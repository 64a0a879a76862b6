// at::cuda::ThrustAllocator: temporary memory of Thrust's algorithms by Lamella's allocator.
#pragma once
#include <c10/cuda/CUDACachingAllocator.h>

namespace at::cuda {
class ThrustAllocator {
 public:
  using value_type = char;
  char* allocate(std::ptrdiff_t bytes) {
    return static_cast<char*>(
        c10::cuda::CUDACachingAllocator::raw_alloc(static_cast<size_t>(bytes)));
  }
  void deallocate(char* data, size_t) { c10::cuda::CUDACachingAllocator::raw_delete(data); }
};
}  // namespace at::cuda
