// at::DeprecatedTypeProperties: the result of Tensor::type(), a dtype and a device.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Backend.h>

namespace at {
class DeprecatedTypeProperties : public lamella::TensorKind {
 public:
  using TensorKind::TensorKind;
  DeprecatedTypeProperties(TensorKind kind) : TensorKind(kind) {}  // NOLINT: implicit
  Backend backend() const { return c10::deviceTypeToBackend(device_type()); }
};
}  // namespace at
