// at::cuda: the properties of devices and their memory.
#pragma once
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <atomic>

namespace at::cuda {
inline int64_t getNumGPUs() { return c10::cuda::device_count(); }
inline bool is_available() { return c10::cuda::device_count() > 0; }

namespace detail {
// Kept for the life of the process, from the first time on.
inline cudaDeviceProp* properties_of(c10::DeviceIndex device) {
  static std::atomic<cudaDeviceProp*> all[C10_COMPILE_TIME_MAX_GPUS];
  std::atomic<cudaDeviceProp*>& one = all[device];
  if (one.load(std::memory_order_acquire) == nullptr) {
    auto* made = new cudaDeviceProp;
    C10_CUDA_CHECK(cudaGetDeviceProperties(made, device));
    cudaDeviceProp* none = nullptr;
    if (!one.compare_exchange_strong(none, made)) delete made;
  }
  return one.load(std::memory_order_acquire);
}
}  // namespace detail

inline cudaDeviceProp* getDeviceProperties(c10::DeviceIndex device) {
  return detail::properties_of(device < 0 ? c10::cuda::current_device() : device);
}
inline cudaDeviceProp* getCurrentDeviceProperties() { return getDeviceProperties(-1); }
inline int warp_size() { return getCurrentDeviceProperties()->warpSize; }
inline bool canDeviceAccessPeer(c10::DeviceIndex device, c10::DeviceIndex peer) {
  int can = 0;
  lamella::detail::check(lamella_cuda_can_access_peer(device, peer, &can));
  return can != 0;
}
inline c10::Allocator* getCUDADeviceAllocator() { return c10::cuda::CUDACachingAllocator::get(); }
}  // namespace at::cuda
