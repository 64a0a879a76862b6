// c10::DeviceType, at::kCPU, …, and the name of the PrivateUse1 device type.
#pragma once
#include <c10/lamella_names.h>

#include <string>

#include "lamella/core/backend.h"

// Declared in the type's namespace, so that argument-dependent lookup finds it.
namespace lamella {
// "CPU", or "cpu".
inline std::string DeviceTypeName(DeviceType type, bool lower_case = false) {
  return device_type_name(type, lower_case);
}
// The name of the devices of PrivateUse1. Throws if they have another one.
inline void register_privateuse1_backend(const std::string& name) {
  detail::check(
      lamella_rename_device_type(static_cast<uint8_t>(DeviceType::PrivateUse1), name.c_str()));
}
inline std::string get_privateuse1_backend(bool lower_case = true) {
  return device_type_name(DeviceType::PrivateUse1, lower_case);
}
inline bool is_privateuse1_backend_registered() {
  return get_privateuse1_backend() != "privateuseone";
}
}  // namespace lamella
namespace c10 {
inline constexpr int COMPILE_TIME_MAX_DEVICE_TYPES = lamella::kDeviceTypes;
}
