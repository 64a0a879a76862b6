// at::scalar_tensor, c10::scalar_to_tensor.
#pragma once
#include <ATen/Functions.h>

namespace c10 {
LAMELLA_LAZY lamella::Tensor scalar_to_tensor(const lamella::Scalar& value,
                                              lamella::Device device = lamella::kCPU) {
  return lamella::scalar_tensor(value, lamella::TensorOptions(value.type()).device(device));
}
}  // namespace c10
