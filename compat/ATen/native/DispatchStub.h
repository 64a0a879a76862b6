// DECLARE_DISPATCH and its kin: kernels chosen by device.
#pragma once
#include <ATen/core/Tensor.h>

#include "lamella/dispatch/device_stub.h"

#define DECLARE_DISPATCH(fn, stub)                                  \
  struct stub##_DECLARE_DISPATCH_type : ::lamella::DeviceStub<fn> { \
    using FnPtr = fn;                                               \
    constexpr stub##_DECLARE_DISPATCH_type() : DeviceStub(#stub) {} \
  };                                                                \
  extern stub##_DECLARE_DISPATCH_type stub;
#define DEFINE_DISPATCH(stub) stub##_DECLARE_DISPATCH_type stub
#define LAMELLA_REGISTER_STUB(stub, device, fn)                                   \
  static const ::lamella::RegisterDeviceStub<stub##_DECLARE_DISPATCH_type,        \
                                             stub##_DECLARE_DISPATCH_type::FnPtr> \
  LAMELLA_CONCAT(stub##_register_, __LINE__)(stub, ::lamella::DeviceType::device, fn)
#define REGISTER_DISPATCH(stub, fn) LAMELLA_REGISTER_STUB(stub, CPU, fn)
#define REGISTER_ALL_CPU_DISPATCH(stub, fn) LAMELLA_REGISTER_STUB(stub, CPU, fn)
#define REGISTER_NO_CPU_DISPATCH(stub)
#define ALSO_REGISTER_AVX512_DISPATCH(stub, fn) REGISTER_DISPATCH(stub, fn)
#define REGISTER_CUDA_DISPATCH(stub, fn) LAMELLA_REGISTER_STUB(stub, CUDA, fn)
#define REGISTER_PRIVATEUSE1_DISPATCH(stub, fn) LAMELLA_REGISTER_STUB(stub, PrivateUse1, fn)
