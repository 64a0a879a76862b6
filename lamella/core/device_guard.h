// DeviceGuard: makes a device the current one of its type for as long as it lives.
#pragma once
#include <optional>

#include "lamella/abi/backend.h"
#include "lamella/core/tensor_base.h"

namespace lamella {

namespace detail {
// CPU, Meta and every device type whose backend keeps no current device have a single device, which
// is always current.
inline Device current_device(Device device) {
  return Device(device.type(), lamella_device_current(static_cast<uint8_t>(device.type())));
}
}  // namespace detail

// The device of a tensor; nothing for an undefined one.
LAMELLA_LAZY std::optional<Device> device_of(const TensorBase& tensor) {
  if (!tensor.defined()) return std::nullopt;
  return tensor.device();
}
LAMELLA_LAZY std::optional<Device> device_of(const std::optional<TensorBase>& tensor) {
  if (!tensor.has_value()) return std::nullopt;
  return device_of(*tensor);
}

// The device of the first tensor of a list; nothing for an empty list.
template <class T>
std::optional<Device> device_of(ArrayRef<T> list) {
  if (list.empty()) return std::nullopt;
  return device_of(list[0]);
}

// A device without an index leaves the current one as it is. Throws Error for a device that the
// backend does not have.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device)
      : original_(detail::current_device(device)), current_(original_) {
    if (device.has_index()) set_index(device.index());
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard() {
    if (current_ != original_) {
      lamella_device_exchange(static_cast<uint8_t>(original_.type()), original_.index(), nullptr);
    }
  }
  // Makes another device of the same type current. The destructor still restores the original one.
  void set_index(DeviceIndex index) {
    detail::check(lamella_device_exchange(static_cast<uint8_t>(original_.type()), index, nullptr));
    current_.set_index(index);
  }
  void reset_device(Device device) {
    LAMELLA_CHECK(device.type() == original_.type(), "DeviceGuard: expected a device of type ",
                  original_.type(), ", got ", device);
    set_index(device.index());
  }
  Device original_device() const { return original_; }
  Device current_device() const { return current_; }

 private:
  Device original_, current_;
};

// A DeviceGuard for an optional device: it does nothing without one.
LAMELLA_LAZY class OptionalDeviceGuardOf {
 public:
  OptionalDeviceGuardOf() = default;
  explicit OptionalDeviceGuardOf(Device device) { guard_.emplace(device); }
  explicit OptionalDeviceGuardOf(std::optional<Device> device) {
    if (device) guard_.emplace(*device);
  }
  OptionalDeviceGuardOf(const OptionalDeviceGuardOf&) = delete;
  OptionalDeviceGuardOf& operator=(const OptionalDeviceGuardOf&) = delete;
  void reset_device(Device device) { guard_.emplace(device); }
  std::optional<Device> original_device() const {
    return guard_ ? std::optional<Device>(guard_->original_device()) : std::nullopt;
  }
  std::optional<Device> current_device() const {
    return guard_ ? std::optional<Device>(guard_->current_device()) : std::nullopt;
  }

 private:
  std::optional<DeviceGuard> guard_;
};
using OptionalDeviceGuard = OptionalDeviceGuardOf<>;

}  // namespace lamella
