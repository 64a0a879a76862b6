// c10::Backend: a device type and a layout in one enumerator, PyTorch's predecessor of dispatch
// keys.
#pragma once
#include <c10/core/DeviceType.h>
#include <c10/core/Layout.h>

#include "lamella/core/for_each.h"

namespace c10 {
enum class Backend {
  CPU,
  CUDA,
  HIP,
  SparseCPU,
  SparseCUDA,
  XLA,
  XPU,
  MPS,
  HPU,
  IPU,
  Meta,
  QuantizedCPU,
  PrivateUse1,
  Undefined
};

// The device type of a backend's tensors; TypeError for Undefined.
inline lamella::DeviceType backendToDeviceType(Backend backend) {
  switch (backend) {
#define LAMELLA_BACKEND(name) \
  case Backend::name:         \
    return lamella::DeviceType::name;
    LAMELLA_FOR_EACH(LAMELLA_BACKEND, CPU, CUDA, HIP, XLA, XPU, MPS, HPU, IPU, Meta, PrivateUse1)
#undef LAMELLA_BACKEND
    case Backend::SparseCPU:
    case Backend::QuantizedCPU:
      return lamella::DeviceType::CPU;
    case Backend::SparseCUDA:
      return lamella::DeviceType::CUDA;
    case Backend::Undefined:
      break;
  }
  throw lamella::TypeError("backendToDeviceType: expected a backend, got Undefined");
}
// The backend of a device type's strided tensors; Undefined where it has no name here.
inline Backend deviceTypeToBackend(lamella::DeviceType type) {
  for (int i = 0; i < static_cast<int>(Backend::Undefined); ++i) {
    if (backendToDeviceType(static_cast<Backend>(i)) == type) return static_cast<Backend>(i);
  }
  return Backend::Undefined;
}
}  // namespace c10
