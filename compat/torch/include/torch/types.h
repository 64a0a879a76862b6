// torch::Tensor, torch::Dtype, torch::kFloat32, torch::empty, ….
#pragma once
#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>

namespace torch {
using Dtype = lamella::ScalarType;
using Deleter = std::function<void(void*)>;
inline constexpr Dtype kU8 = Dtype::Byte, kI8 = Dtype::Char, kI16 = Dtype::Short, kI32 = Dtype::Int,
                       kI64 = Dtype::Long, kF16 = Dtype::Half, kF32 = Dtype::Float,
                       kF64 = Dtype::Double;
namespace detail {
using TensorDataContainer = lamella::detail::Numbers;
}
}  // namespace torch
