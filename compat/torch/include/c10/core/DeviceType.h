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
}  // namespace lamella
namespace c10 {
inline constexpr int COMPILE_TIME_MAX_DEVICE_TYPES = lamella::kDeviceTypes;
}
