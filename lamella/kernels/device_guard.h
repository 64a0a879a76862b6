// DeviceGuard: the current device of a backend, switched to that of a call's first tensor for as
// long as the kernel runs. The CPU has no current device, and costs nothing here.
#pragma once
#include "lamella/api/tensor.h"

namespace lamella {

// Sets the backend's current device and returns the former one.
using ExchangeDevice = DeviceIndex (*)(DeviceIndex index);
// Called by a backend's library when it is loaded.
void set_exchange_device(DeviceType type, ExchangeDevice exchange);

namespace detail {

class DeviceGuard {
 public:
  explicit DeviceGuard(std::optional<Device> device) {
    if (device.has_value()) enter(*device);
  }
  explicit DeviceGuard(const Tensor& tensor) {
    if (tensor.defined()) enter(tensor.device());
  }
  explicit DeviceGuard(const std::optional<Tensor>& tensor)
      : DeviceGuard(tensor.has_value() ? *tensor : Tensor()) {}
  explicit DeviceGuard(TensorList list) : DeviceGuard(list.empty() ? Tensor() : list[0]) {}
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard() {
    if (exchange_ != nullptr) exchange_(former_);
  }

 private:
  void enter(Device device);

  ExchangeDevice exchange_ = nullptr;
  DeviceIndex former_ = -1;
};

}  // namespace detail
}  // namespace lamella
