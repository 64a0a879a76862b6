// Guards of CUDA devices and streams. Each makes the device's context current as well; see
// Note [Extensions and CUDA's runtime] in lamella/core/cuda_extension.h.
#pragma once
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <optional>
#include <vector>

namespace c10::cuda {

class CUDAGuard {
 public:
  explicit CUDAGuard(DeviceIndex device) : original_(ExchangeDevice(device)) {}
  explicit CUDAGuard(Device device) : CUDAGuard(checked(device)) {}
  CUDAGuard(const CUDAGuard&) = delete;
  CUDAGuard& operator=(const CUDAGuard&) = delete;
  ~CUDAGuard() {
    lamella_device_exchange(kCudaType, original_, nullptr);
    lamella_cuda_enter(original_);
  }
  void set_index(DeviceIndex device) { ExchangeDevice(device); }
  void set_device(Device device) { set_index(checked(device)); }
  void reset_device(Device device) { set_device(device); }
  Device original_device() const { return Device(DeviceType::CUDA, original_); }
  Device current_device() const { return Device(DeviceType::CUDA, cuda::current_device()); }

 private:
  static DeviceIndex checked(Device device) {
    TORCH_CHECK(device.is_cuda(), "CUDAGuard: expected a device of type cuda, got ", device);
    return device.has_index() ? device.index() : cuda::current_device();
  }
  DeviceIndex original_;
};

class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(std::optional<Device> device) {
    if (device) guard_.emplace(*device);
  }
  explicit OptionalCUDAGuard(Device device) { guard_.emplace(device); }
  explicit OptionalCUDAGuard(std::optional<DeviceIndex> device) {
    if (device) guard_.emplace(*device);
  }
  explicit OptionalCUDAGuard(DeviceIndex device) { guard_.emplace(device); }
  OptionalCUDAGuard(const OptionalCUDAGuard&) = delete;
  OptionalCUDAGuard& operator=(const OptionalCUDAGuard&) = delete;
  void set_index(DeviceIndex device) {
    guard_ ? guard_->set_index(device) : static_cast<void>(guard_.emplace(device));
  }
  void set_device(Device device) {
    guard_ ? guard_->set_device(device) : static_cast<void>(guard_.emplace(device));
  }
  void reset_device(Device device) { set_device(device); }
  std::optional<Device> original_device() const {
    return guard_ ? std::optional<Device>(guard_->original_device()) : std::nullopt;
  }
  std::optional<Device> current_device() const {
    return guard_ ? std::optional<Device>(guard_->current_device()) : std::nullopt;
  }
  void reset() { guard_.reset(); }

 private:
  std::optional<CUDAGuard> guard_;
};

// Makes a stream current on its device, and the device current.
class CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(Stream stream) : device_(CUDAStream(stream).device()), guard_(stream) {}
  CUDAStreamGuard(const CUDAStreamGuard&) = delete;
  CUDAStreamGuard& operator=(const CUDAStreamGuard&) = delete;
  CUDAStream original_stream() const { return CUDAStream(guard_.original_stream()); }
  CUDAStream current_stream() const { return CUDAStream(guard_.current_stream()); }
  Device original_device() const { return device_.original_device(); }
  Device current_device() const { return guard_.current_stream().device(); }

 private:
  CUDAGuard device_;
  StreamGuard guard_;
};

class OptionalCUDAStreamGuard {
 public:
  OptionalCUDAStreamGuard() = default;
  explicit OptionalCUDAStreamGuard(Stream stream) { guard_.emplace(stream); }
  explicit OptionalCUDAStreamGuard(std::optional<Stream> stream) {
    if (stream) guard_.emplace(*stream);
  }
  void reset_stream(Stream stream) {
    guard_.reset();
    guard_.emplace(stream);
  }
  std::optional<CUDAStream> original_stream() const {
    return guard_ ? std::optional<CUDAStream>(guard_->original_stream()) : std::nullopt;
  }
  std::optional<CUDAStream> current_stream() const {
    return guard_ ? std::optional<CUDAStream>(guard_->current_stream()) : std::nullopt;
  }
  void reset() { guard_.reset(); }

 private:
  std::optional<CUDAStreamGuard> guard_;
};

// Makes streams current on their devices; the current device stays.
class CUDAMultiStreamGuard {
 public:
  explicit CUDAMultiStreamGuard(ArrayRef<CUDAStream> streams) {
    for (const CUDAStream& stream : streams) {
      former_.push_back(detail::stream_of(
          stream.device_index(), lamella_stream_current(kCudaType, stream.device_index())));
      setCurrentCUDAStream(stream);
    }
  }
  CUDAMultiStreamGuard(const CUDAMultiStreamGuard&) = delete;
  CUDAMultiStreamGuard& operator=(const CUDAMultiStreamGuard&) = delete;
  ~CUDAMultiStreamGuard() {
    for (const CUDAStream& stream : former_) {
      lamella_stream_exchange(kCudaType, stream.device_index(), stream.id(), nullptr);
    }
  }

 private:
  std::vector<CUDAStream> former_;
};

}  // namespace c10::cuda

namespace at::cuda {
using c10::cuda::CUDAGuard, c10::cuda::CUDAMultiStreamGuard, c10::cuda::CUDAStreamGuard,
    c10::cuda::OptionalCUDAGuard, c10::cuda::OptionalCUDAStreamGuard;
}  // namespace at::cuda
