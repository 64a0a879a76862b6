// c10::Backend: a device type and a layout in one enumerator, PyTorch's predecessor of dispatch
// keys.
#pragma once
#include <c10/core/DeviceType.h>
#include <c10/core/Layout.h>

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
  using lamella::DeviceType;
  switch (backend) {
    case Backend::CPU:
    case Backend::SparseCPU:
    case Backend::QuantizedCPU:
      return DeviceType::CPU;
    case Backend::CUDA:
    case Backend::SparseCUDA:
      return DeviceType::CUDA;
    case Backend::HIP:
      return DeviceType::HIP;
    case Backend::XLA:
      return DeviceType::XLA;
    case Backend::XPU:
      return DeviceType::XPU;
    case Backend::MPS:
      return DeviceType::MPS;
    case Backend::HPU:
      return DeviceType::HPU;
    case Backend::IPU:
      return DeviceType::IPU;
    case Backend::Meta:
      return DeviceType::Meta;
    case Backend::PrivateUse1:
      return DeviceType::PrivateUse1;
    case Backend::Undefined:
      break;
  }
  throw lamella::TypeError("backendToDeviceType: expected a backend, got Undefined");
}
}  // namespace c10
