// The state that autocast keeps for each thread: Notes [Autocast on a thread] and [Casts of
// weights] in lamella/abi/autocast.h. Internal.
#pragma once
#include "lamella/abi/autocast.h"
#include "lamella/api/tensor.h"

namespace lamella::autocast {

// Whether casts apply to the tensor: on the device type, floating-point, not float64.
inline bool is_eligible(const lamella_tensor* t, DeviceType device) {
  const auto here = static_cast<DeviceType>(t->device_type);
  const bool there = here == device || (device == DeviceType::CUDA && here == DeviceType::XLA) ||
                     (device == DeviceType::CPU && here == DeviceType::MKLDNN);
  const auto dtype = static_cast<ScalarType>(t->scalar_type);
  return there && is_floating_point(dtype) && dtype != ScalarType::Double;
}

// The tensor as `dtype`, from the casts that are kept where it is a weight. It must be eligible.
TensorBase cast(lamella_tensor* t, ScalarType dtype, DeviceType device);

// Turns autocast off on the thread for as long as it lives.
class Off {
 public:
  Off() : before_(lamella_autocast_exchange(0)) {}
  ~Off() { lamella_autocast_exchange(before_); }
  Off(const Off&) = delete;
  Off& operator=(const Off&) = delete;

 private:
  uint64_t before_;
};

}  // namespace lamella::autocast
