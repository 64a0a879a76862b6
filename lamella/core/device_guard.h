// DeviceGuard: makes a device the current one of its type for as long as it lives.
#pragma once
#include <optional>

#include "lamella/core/tensor_base.h"

namespace lamella {

namespace detail {
// The CPU and Meta have one device each, which is always current, and so has every other type of
// device whose library keeps no current one.
inline Device current_device(Device device) { return Device(device.type(), 0); }
}  // namespace detail

// The device of a tensor; nothing for an undefined one.
inline std::optional<Device> device_of(const TensorBase& tensor) {
  if (!tensor.defined()) return std::nullopt;
  return tensor.device();
}
inline std::optional<Device> device_of(const std::optional<TensorBase>& tensor) {
  return tensor.has_value() ? device_of(*tensor) : std::nullopt;
}

class DeviceGuard {
 public:
  explicit DeviceGuard(Device device)
      : original_(detail::current_device(device)), current_(device) {
    if (!current_.has_index()) current_ = original_;
    LAMELLA_CHECK(current_.index() == 0, "DeviceGuard: expected the only device of its type, ",
                  original_, ", got ", current_);
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  Device original_device() const { return original_; }
  Device current_device() const { return current_; }

 private:
  Device original_, current_;
};

// The same where there may be no device.
class OptionalDeviceGuard {
 public:
  OptionalDeviceGuard() = default;
  explicit OptionalDeviceGuard(Device device) { guard_.emplace(device); }
  explicit OptionalDeviceGuard(std::optional<Device> device) {
    if (device) guard_.emplace(*device);
  }
  OptionalDeviceGuard(const OptionalDeviceGuard&) = delete;
  OptionalDeviceGuard& operator=(const OptionalDeviceGuard&) = delete;
  std::optional<Device> original_device() const {
    return guard_ ? std::optional<Device>(guard_->original_device()) : std::nullopt;
  }
  std::optional<Device> current_device() const {
    return guard_ ? std::optional<Device>(guard_->current_device()) : std::nullopt;
  }

 private:
  std::optional<DeviceGuard> guard_;
};

}  // namespace lamella
