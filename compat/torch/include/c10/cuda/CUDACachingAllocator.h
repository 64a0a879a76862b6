// c10::cuda::CUDACachingAllocator: memory of devices without a tensor.
#pragma once
#include <c10/core/Allocator.h>
#include <c10/cuda/CUDAStream.h>

namespace c10::cuda::CUDACachingAllocator {

inline void* raw_alloc_with_stream(size_t bytes, cudaStream_t handle) {
  const DeviceIndex device = current_device();
  void* data = nullptr;
  lamella::detail::check(
      lamella_cuda_allocate(device, getStreamFromExternal(handle, device).id(), bytes, &data));
  return data;
}
inline void* raw_alloc(size_t bytes) {
  const CUDAStream stream = getCurrentCUDAStream();
  void* data = nullptr;
  lamella::detail::check(lamella_cuda_allocate(stream.device_index(), stream.id(), bytes, &data));
  return data;
}
inline void raw_delete(void* data) { lamella::detail::check(lamella_cuda_free(data)); }
inline void emptyCache() { lamella::detail::check(lamella_cuda_empty_cache()); }
// The memory is reused when the stream's work of now is done.
inline void recordStream(const DataPtr& data, CUDAStream stream) {
  if (data.get() == nullptr) return;
  lamella::detail::check(
      lamella_cuda_record_stream(data.get(), stream.device_index(), stream.id()));
}

// The allocator as an object: get()->allocate(bytes).
class CUDAAllocator final : public Allocator {
 public:
  DataPtr allocate(size_t bytes) override {
    void* data = raw_alloc(bytes);
    return DataPtr(data, data, &raw_delete, Device(DeviceType::CUDA, current_device()));
  }
  DeleterFnPtr raw_deleter() const override { return &raw_delete; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    C10_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                                   getCurrentCUDAStream().stream()));
  }
  void* raw_alloc(size_t bytes) { return CUDACachingAllocator::raw_alloc(bytes); }
};
inline CUDAAllocator* get() {
  static CUDAAllocator allocator;
  return &allocator;
}

}  // namespace c10::cuda::CUDACachingAllocator
