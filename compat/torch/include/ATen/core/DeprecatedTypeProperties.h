// at::DeprecatedTypeProperties: the result of Tensor::type(), a dtype and a device.
#pragma once
#include <ATen/core/Tensor.h>

namespace at {
using DeprecatedTypeProperties = lamella::TensorKind;
}  // namespace at
