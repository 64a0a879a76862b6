// DECLARE_DISPATCH and its kin: kernels chosen by device.
#pragma once
#include <ATen/core/Tensor.h>

#include <utility>

#include "lamella/core/error.h"

namespace at::native {

// A function pointer for each device, set by the library that has the kernel.
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

}  // namespace at::native

#define DECLARE_DISPATCH(fn, stub)                                     \
  struct stub##_DECLARE_DISPATCH_type : ::at::native::DeviceStub<fn> { \
    using FnPtr = fn;                                                  \
    constexpr stub##_DECLARE_DISPATCH_type() : DeviceStub(#stub) {}    \
  };                                                                   \
  extern stub##_DECLARE_DISPATCH_type stub;
#define DEFINE_DISPATCH(stub) stub##_DECLARE_DISPATCH_type stub
#define LAMELLA_REGISTER_STUB(stub, device, fn)                                      \
  static const ::at::native::RegisterDeviceStub<stub##_DECLARE_DISPATCH_type,        \
                                                stub##_DECLARE_DISPATCH_type::FnPtr> \
  LAMELLA_CONCAT(stub##_register_, __LINE__)(stub, ::lamella::DeviceType::device, fn)
#define REGISTER_DISPATCH(stub, fn) LAMELLA_REGISTER_STUB(stub, CPU, fn)
#define REGISTER_ALL_CPU_DISPATCH(stub, fn) LAMELLA_REGISTER_STUB(stub, CPU, fn)
#define REGISTER_NO_CPU_DISPATCH(stub)
#define ALSO_REGISTER_AVX512_DISPATCH(stub, fn) REGISTER_DISPATCH(stub, fn)
#define REGISTER_CUDA_DISPATCH(stub, fn) LAMELLA_REGISTER_STUB(stub, CUDA, fn)
#define REGISTER_PRIVATEUSE1_DISPATCH(stub, fn) LAMELLA_REGISTER_STUB(stub, PrivateUse1, fn)
