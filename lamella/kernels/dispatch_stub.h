// DispatchStub: one kernel function per device and, on the CPU, per instruction set; chosen at run
// time.
//
// Note [CPU capabilities]
//   Each file in kernels/cpu/simd is compiled once per capability. The highest one that the
//   processor has is used; LAMELLA_CPU_CAPABILITY=default|avx2|avx512 lowers it. A stub's choice is
//   made once, at its first call.
#pragma once
#include <cstdint>
#include <utility>

#include "lamella/core/device.h"
#include "lamella/core/error.h"

namespace lamella {

enum class CPUCapability : int8_t { DEFAULT = 0, AVX2 = 1, AVX512 = 2, NUM_OPTIONS };

// "DEFAULT", "AVX2", "AVX512".
LAMELLA_PRIVATE_API const char* toString(CPUCapability capability);

namespace native {

// The capability that kernels use: the processor's, lowered by the environment variable. Throws
// ValueError if the variable has an unknown value.
LAMELLA_PRIVATE_API CPUCapability get_cpu_capability();

// If no kernel was compiled for an instruction set, the next lower one is used.
struct DispatchStubImpl {
  static constexpr int kCapabilities = static_cast<int>(CPUCapability::NUM_OPTIONS);
  // Kernels of other devices, found by device type.
  static constexpr int kDevices = kDeviceTypes;

  void* chosen = nullptr;  // atomic: the CPU kernel, once it is known
  void* cpu[kCapabilities] = {};
  void* device[kDevices] = {};

  // The kernel for the device. Throws NotImplementedError, naming the stub, if there is none.
  void* find(DeviceType type, const char* name);
  void set(CPUCapability capability, void* kernel) { cpu[static_cast<int>(capability)] = kernel; }
  void set(DeviceType type, void* kernel);
  bool supports(DeviceType type) const;
};

template <class FnPtr, class Tag>
class DispatchStub;

// Tag gives the stub's name for messages.
template <class R, class... A, class Tag>
class DispatchStub<R (*)(A...), Tag> {
 public:
  using FnPtr = R (*)(A...);

  template <class... Args>
  R operator()(DeviceType type, Args&&... arguments) {
    return get_call_ptr(type)(std::forward<Args>(arguments)...);
  }
  FnPtr get_call_ptr(DeviceType type) {
    void* kernel =
        type == DeviceType::CPU ? __atomic_load_n(&impl_.chosen, __ATOMIC_ACQUIRE) : nullptr;
    if (LAMELLA_UNLIKELY(kernel == nullptr)) kernel = impl_.find(type, Tag::name());
    return reinterpret_cast<FnPtr>(kernel);
  }
  bool is_device_supported(DeviceType type) const { return impl_.supports(type); }

  void set_cpu_kernel(CPUCapability capability, FnPtr kernel) {
    impl_.set(capability, reinterpret_cast<void*>(kernel));
  }
  void set_device_kernel(DeviceType type, FnPtr kernel) {
    impl_.set(type, reinterpret_cast<void*>(kernel));
  }

 private:
  DispatchStubImpl impl_;
};

template <class Stub, class FnPtr>
struct RegisterCpuKernel {
  RegisterCpuKernel(Stub& stub, CPUCapability capability, FnPtr kernel) {
    stub.set_cpu_kernel(capability, kernel);
  }
};
template <class Stub, class FnPtr>
struct RegisterDeviceKernel {
  RegisterDeviceKernel(Stub& stub, DeviceType type, FnPtr kernel) {
    stub.set_device_kernel(type, kernel);
  }
};

// The name of a stub as a template argument.
struct StubName {
  char text[32] = {};
  template <size_t N>
  consteval StubName(const char (&name)[N]) {  // NOLINT(google-explicit-constructor)
    static_assert(N <= sizeof(text), "the name of a stub has at most 31 characters");
    for (size_t i = 0; i < N; ++i) text[i] = name[i];
  }
};
template <StubName stub>
struct StubNameTag {
  static const char* name() { return stub.text; }
};
// The stub of this name for kernels of type Fn, for families of operators whose kernels have one
// type. It needs no declaration: both registration and calls refer to it by name.
template <class Fn, StubName stub>
inline constinit DispatchStub<Fn, StubNameTag<stub>> named_stub;

}  // namespace native
using native::get_cpu_capability;

// In a header: the stub `stub` for kernels of type `fn`.
#define LAMELLA_DECLARE_DISPATCH(fn, stub)                             \
  struct stub##_tag {                                                  \
    static const char* name() { return #stub; }                        \
  };                                                                   \
  using stub##_type = ::lamella::native::DispatchStub<fn, stub##_tag>; \
  extern stub##_type stub

// In one source file, in the same namespace.
#define LAMELLA_DEFINE_DISPATCH(stub) constinit stub##_type stub

// In a file compiled per capability, or in a plain one (which then serves every capability).
#ifdef CPU_CAPABILITY
#define LAMELLA_THIS_CAPABILITY ::lamella::CPUCapability::CPU_CAPABILITY
#else
#define LAMELLA_THIS_CAPABILITY ::lamella::CPUCapability::DEFAULT
#endif
#define LAMELLA_REGISTER_DISPATCH(stub, fn)                                          \
  static const ::lamella::native::RegisterCpuKernel<stub##_type, stub##_type::FnPtr> \
  LAMELLA_CONCAT(stub##_register_, __LINE__)(stub, LAMELLA_THIS_CAPABILITY, fn)

// For another device, from any library.
#define LAMELLA_REGISTER_DEVICE_DISPATCH(stub, device, fn)                              \
  static const ::lamella::native::RegisterDeviceKernel<stub##_type, stub##_type::FnPtr> \
  LAMELLA_CONCAT(stub##_register_, __LINE__)(stub, device, fn)

#ifndef DECLARE_DISPATCH
#define DECLARE_DISPATCH LAMELLA_DECLARE_DISPATCH
#define DEFINE_DISPATCH LAMELLA_DEFINE_DISPATCH
#define REGISTER_DISPATCH LAMELLA_REGISTER_DISPATCH
#define REGISTER_CUDA_DISPATCH(stub, fn) \
  LAMELLA_REGISTER_DEVICE_DISPATCH(stub, ::lamella::DeviceType::CUDA, fn)
#define REGISTER_PRIVATEUSE1_DISPATCH(stub, fn) \
  LAMELLA_REGISTER_DEVICE_DISPATCH(stub, ::lamella::DeviceType::PrivateUse1, fn)
#endif

}  // namespace lamella
