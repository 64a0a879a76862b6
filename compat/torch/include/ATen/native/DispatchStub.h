// DECLARE_DISPATCH and related macros: kernels chosen by device.
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
  // NotImplementedError with the stub's name if the device has no kernel.
  template <class... A>
  decltype(auto) operator()(DeviceType type, A&&... arguments) {
    FnPtr kernel = kernels_[static_cast<int>(type)];
    LAMELLA_CHECK_NOT_IMPLEMENTED(kernel != nullptr, name_, ": expected a kernel for ", type,
                                  ", got none");
    return kernel(std::forward<A>(arguments)...);
  }
  // If a device gets several kernels, the one of the highest rank is kept: ranks order CPU
  // capabilities.
  void set(DeviceType type, FnPtr kernel, int rank = 0) {
    if (rank < ranks_[static_cast<int>(type)]) return;
    kernels_[static_cast<int>(type)] = kernel;
    ranks_[static_cast<int>(type)] = rank;
  }
  bool is_device_supported(DeviceType type) const {
    return kernels_[static_cast<int>(type)] != nullptr;
  }

 private:
  const char* name_;
  FnPtr kernels_[kDeviceTypes] = {};
  int ranks_[kDeviceTypes] = {};
};
template <class Stub, class FnPtr>
struct RegisterDeviceStub {
  RegisterDeviceStub(Stub& stub, DeviceType type, FnPtr kernel) { stub.set(type, kernel); }
};
// Registers a CPU kernel compiled for a capability, if the processor supports it.
template <class Stub, class FnPtr>
struct RegisterCapabilityStub {
  enum Capability : uint8_t { DEFAULT, AVX2, AVX512, ZVECTOR, VSX, SVE256, RVV };
  RegisterCapabilityStub(Stub& stub, Capability capability, FnPtr kernel) {
    bool has = capability == DEFAULT;
#if defined(__x86_64__)
    has = has || (capability == AVX2 && __builtin_cpu_supports("avx2")) ||
          (capability == AVX512 && __builtin_cpu_supports("avx512f"));
#endif
    if (has) stub.set(DeviceType::CPU, kernel, capability);
  }
};

}  // namespace at::native

#define DECLARE_DISPATCH(fn, stub)                                     \
  struct stub##_DECLARE_DISPATCH_type : ::at::native::DeviceStub<fn> { \
    using FnPtr = fn;                                                  \
    constexpr stub##_DECLARE_DISPATCH_type() : DeviceStub(#stub) {}    \
  };                                                                   \
  extern stub##_DECLARE_DISPATCH_type stub;
#define DEFINE_DISPATCH(stub) stub##_DECLARE_DISPATCH_type stub
// The macros include the semicolon, as PyTorch's do.
#define LAMELLA_REGISTER_STUB(stub, device, fn)                                      \
  static const ::at::native::RegisterDeviceStub<stub##_DECLARE_DISPATCH_type,        \
                                                stub##_DECLARE_DISPATCH_type::FnPtr> \
      LAMELLA_CONCAT(stub##_register_, __LINE__)(stub, ::lamella::DeviceType::device, fn);
#define REGISTER_ARCH_DISPATCH(stub, arch, fn)                                             \
  static const ::at::native::RegisterCapabilityStub<stub##_DECLARE_DISPATCH_type,          \
                                                    stub##_DECLARE_DISPATCH_type::FnPtr>   \
      LAMELLA_CONCAT(stub##_register_##arch##_, __LINE__)(                                 \
          stub,                                                                            \
          ::at::native::RegisterCapabilityStub<stub##_DECLARE_DISPATCH_type,               \
                                               stub##_DECLARE_DISPATCH_type::FnPtr>::arch, \
          fn);
#define REGISTER_AVX2_DISPATCH(stub, fn) REGISTER_ARCH_DISPATCH(stub, AVX2, fn)
#define REGISTER_AVX512_DISPATCH(stub, fn) REGISTER_ARCH_DISPATCH(stub, AVX512, fn)
#define REGISTER_ALL_CPU_DISPATCH(stub, fn) REGISTER_ARCH_DISPATCH(stub, DEFAULT, fn)
#define REGISTER_NO_CPU_DISPATCH(stub)
// Files that are compiled once for each capability define CPU_CAPABILITY.
#if defined(CPU_CAPABILITY_AVX512)
#define REGISTER_DISPATCH(stub, fn) REGISTER_ARCH_DISPATCH(stub, AVX512, fn)
#elif defined(CPU_CAPABILITY_AVX2)
#define REGISTER_DISPATCH(stub, fn) REGISTER_ARCH_DISPATCH(stub, AVX2, fn)
#else
#define REGISTER_DISPATCH(stub, fn) REGISTER_ARCH_DISPATCH(stub, DEFAULT, fn)
#endif
#define ALSO_REGISTER_AVX512_DISPATCH(stub, fn) REGISTER_DISPATCH(stub, fn)
#define REGISTER_CUDA_DISPATCH(stub, fn) LAMELLA_REGISTER_STUB(stub, CUDA, fn)
#define REGISTER_PRIVATEUSE1_DISPATCH(stub, fn) LAMELLA_REGISTER_STUB(stub, PrivateUse1, fn)
