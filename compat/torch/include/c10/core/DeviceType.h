// c10::DeviceType, at::kCPU, …, and the name of PrivateUse1's devices.
#pragma once
#include <c10/lamella_names.h>

#include <string>

#include "lamella/core/backend.h"

// Beside the type, so that it is found by it alone.
namespace lamella {
// "CPU", or "cpu".
inline std::string DeviceTypeName(DeviceType type, bool lower_case = false) {
  return device_type_name(type, lower_case);
}
}  // namespace lamella
namespace c10 {
inline constexpr int COMPILE_TIME_MAX_DEVICE_TYPES = lamella::kDeviceTypes;
}
