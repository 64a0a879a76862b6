// c10::cuda::CUDAStream, and the streams of the devices.
#pragma once
#include <c10/core/Stream.h>
#include <c10/cuda/CUDAFunctions.h>

#include <ostream>
#include <tuple>

namespace c10::cuda {

class CUDAStream {
 public:
  enum Unchecked { UNCHECKED };
  explicit CUDAStream(Stream stream) : stream_(stream) {
    TORCH_CHECK(stream.device_type() == DeviceType::CUDA,
                "CUDAStream: expected a stream of a CUDA device, got one of ", stream.device());
  }
  CUDAStream(Unchecked, Stream stream) : stream_(stream) {}
  bool operator==(const CUDAStream& other) const = default;
  operator cudaStream_t() const { return stream(); }  // NOLINT: as in PyTorch
  operator Stream() const { return stream_; }         // NOLINT
  DeviceType device_type() const { return DeviceType::CUDA; }
  DeviceIndex device_index() const { return stream_.device_index(); }
  Device device() const { return stream_.device(); }
  StreamId id() const { return stream_.id(); }
  bool query() const { return stream_.query(); }
  void synchronize() const { stream_.synchronize(); }
  Stream unwrap() const { return stream_; }
  int priority() const {
    int priority = 0;
    DeviceGuard guard(device());
    C10_CUDA_CHECK(cudaStreamGetPriority(stream(), &priority));
    return priority;
  }
  // The runtime's handle.
  cudaStream_t stream() const {
    int64_t handle = 0;
    lamella::detail::check(lamella_cuda_stream_handle(device_index(), id(), &handle));
    return reinterpret_cast<cudaStream_t>(handle);
  }
  // The lowest and the highest priority.
  static std::tuple<int, int> priority_range() {
    int least = 0, greatest = 0;
    lamella::detail::check(lamella_cuda_priority_range(current_device(), &least, &greatest));
    return {least, greatest};
  }

 private:
  Stream stream_;
};

namespace detail {
inline CUDAStream stream_of(DeviceIndex device, StreamId id) {
  return CUDAStream(CUDAStream::UNCHECKED,
                    Stream(Stream::UNSAFE, Device(DeviceType::CUDA, device), id));
}
inline DeviceIndex index_or_current(DeviceIndex device) {
  return device < 0 ? current_device() : device;
}
}  // namespace detail

inline CUDAStream getDefaultCUDAStream(DeviceIndex device = -1) {
  return detail::stream_of(detail::index_or_current(device), 0);
}
// For the current device this makes its context current, in which the caller launches kernels.
inline CUDAStream getCurrentCUDAStream(DeviceIndex device = -1) {
  const DeviceIndex current = current_device();
  if (device < 0) device = current;
  if (device == current) lamella::detail::check(lamella_cuda_enter(device));
  return detail::stream_of(device, lamella_stream_current(kCudaType, device));
}
inline CUDAStream getStreamFromPool(const int priority, DeviceIndex device = -1) {
  return CUDAStream(
      Stream::make(Device(DeviceType::CUDA, detail::index_or_current(device)), priority));
}
inline CUDAStream getStreamFromPool(const bool is_high_priority = false, DeviceIndex device = -1) {
  return getStreamFromPool(is_high_priority ? std::get<1>(CUDAStream::priority_range()) : 0,
                           device);
}
inline CUDAStream getStreamFromExternal(cudaStream_t handle, DeviceIndex device) {
  StreamId id = 0;
  lamella::detail::check(
      lamella_cuda_external_stream(device, reinterpret_cast<int64_t>(handle), &id));
  return detail::stream_of(device, id);
}
inline void setCurrentCUDAStream(CUDAStream stream) {
  lamella::detail::check(
      lamella_stream_exchange(kCudaType, stream.device_index(), stream.id(), nullptr));
}
inline std::ostream& operator<<(std::ostream& out, const CUDAStream& stream) {
  return out << "stream " << stream.id() << " on device cuda:" << int{stream.device_index()};
}

}  // namespace c10::cuda

template <>
struct std::hash<c10::cuda::CUDAStream> {
  size_t operator()(const c10::cuda::CUDAStream& stream) const noexcept {
    return static_cast<size_t>(stream.id()) * 64 + static_cast<size_t>(stream.device_index());
  }
};

namespace at::cuda {
using c10::cuda::CUDAStream, c10::cuda::getCurrentCUDAStream, c10::cuda::getDefaultCUDAStream,
    c10::cuda::getStreamFromExternal, c10::cuda::getStreamFromPool, c10::cuda::setCurrentCUDAStream;
}  // namespace at::cuda
