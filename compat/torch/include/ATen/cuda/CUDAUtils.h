// at::cuda::check_device.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAFunctions.h>

namespace at::cuda {
// Whether all tensors are on the current device.
inline bool check_device(ArrayRef<Tensor> tensors) {
  const Device current(DeviceType::CUDA, c10::cuda::current_device());
  for (const Tensor& tensor : tensors) {
    if (tensor.device() != current) return false;
  }
  return true;
}
}  // namespace at::cuda
