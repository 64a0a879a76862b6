// DeviceGuard: makes the device of a call's first tensor the current one while the kernel runs. It
// does nothing for the CPU, which has no current device.
#pragma once
#include "lamella/api/tensor.h"

namespace lamella {

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
    if (former_ >= 0) leave();
  }

 private:
  void enter(Device device);
  void leave();

  DeviceIndex former_ = -1;  // -1: nothing was changed
  uint8_t type_ = 0;
};

}  // namespace detail
}  // namespace lamella
