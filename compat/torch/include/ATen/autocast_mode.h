// at::autocast.
#pragma once
#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "lamella/autocast.h"

namespace lamella::autocast {
// The older names, for CUDA and the CPU.
inline bool is_enabled() { return is_autocast_enabled(DeviceType::CUDA); }
inline void set_enabled(bool enabled) { set_autocast_enabled(DeviceType::CUDA, enabled); }
inline ScalarType get_autocast_gpu_dtype() { return get_autocast_dtype(DeviceType::CUDA); }
inline void set_autocast_gpu_dtype(ScalarType dtype) {
  set_autocast_dtype(DeviceType::CUDA, dtype);
}
inline bool is_cpu_enabled() { return is_autocast_enabled(DeviceType::CPU); }
inline void set_cpu_enabled(bool enabled) { set_autocast_enabled(DeviceType::CPU, enabled); }
inline ScalarType get_autocast_cpu_dtype() { return get_autocast_dtype(DeviceType::CPU); }
inline void set_autocast_cpu_dtype(ScalarType dtype) { set_autocast_dtype(DeviceType::CPU, dtype); }
inline ScalarType get_lower_precision_fp_from_device_type(DeviceType device) {
  return get_autocast_dtype(device);
}
}  // namespace lamella::autocast
