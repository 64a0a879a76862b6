// DeviceStub: a function pointer for each device, set by the library that has the kernel, for code
// outside of Lamella that chooses its kernels in this way.
#pragma once
#include <utility>

#include "lamella/core/device.h"
#include "lamella/core/error.h"

namespace lamella {

template <class FnPtr>
class DeviceStub {
 public:
  constexpr explicit DeviceStub(const char* name) : name_(name) {}
  // NotImplementedError, naming the stub, where the device has no kernel.
  template <class... A>
  decltype(auto) operator()(DeviceType type, A&&... arguments) {
    FnPtr kernel = kernels_[static_cast<int>(type)];
    LAMELLA_CHECK_NOT_IMPLEMENTED(kernel != nullptr, name_, ": expected a kernel for ", type,
                                  ", got none");
    return kernel(std::forward<A>(arguments)...);
  }
  void set(DeviceType type, FnPtr kernel) { kernels_[static_cast<int>(type)] = kernel; }
  bool is_device_supported(DeviceType type) const {
    return kernels_[static_cast<int>(type)] != nullptr;
  }

 private:
  const char* name_;
  FnPtr kernels_[kDeviceTypes] = {};
};
template <class Stub, class FnPtr>
struct RegisterDeviceStub {
  RegisterDeviceStub(Stub& stub, DeviceType type, FnPtr kernel) { stub.set(type, kernel); }
};

}  // namespace lamella
