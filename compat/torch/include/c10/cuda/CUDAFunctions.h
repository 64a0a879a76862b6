// c10::cuda: the number of devices, and the current one.
#pragma once
#include <c10/core/Device.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAException.h>

namespace c10::cuda {
constexpr uint8_t kCudaType = static_cast<uint8_t>(DeviceType::CUDA);
inline DeviceIndex device_count() noexcept {
  return static_cast<DeviceIndex>(lamella_device_count(kCudaType));
}
inline DeviceIndex device_count_ensure_non_zero() {
  TORCH_CHECK(device_count() > 0, "expected a CUDA device, found none");
  return device_count();
}
inline DeviceIndex current_device() {
  device_count_ensure_non_zero();
  return lamella_device_current(kCudaType);
}
// Returns the device that was current. A negative index leaves it.
inline DeviceIndex ExchangeDevice(DeviceIndex device) {
  const DeviceIndex former = current_device();
  if (device < 0) return former;
  lamella::detail::check(lamella_device_exchange(kCudaType, device, nullptr));
  lamella::detail::check(lamella_cuda_enter(device));
  return former;
}
inline DeviceIndex MaybeExchangeDevice(DeviceIndex device) { return ExchangeDevice(device); }
inline void set_device(DeviceIndex device, bool = false) { ExchangeDevice(device); }
inline cudaError_t GetDevice(DeviceIndex* device) {
  *device = current_device();
  return cudaSuccess;
}
inline cudaError_t SetDevice(DeviceIndex device, bool = false) {
  ExchangeDevice(device);
  return cudaSuccess;
}
inline cudaError_t MaybeSetDevice(DeviceIndex device) { return SetDevice(device); }
inline void device_synchronize() {
  lamella::detail::check(lamella_device_synchronize(kCudaType, current_device()));
}
}  // namespace c10::cuda
