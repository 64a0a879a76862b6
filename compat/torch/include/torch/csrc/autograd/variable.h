// torch::autograd::Variable, variable_list, tensor_list.
#pragma once
#include <ATen/core/Tensor.h>

#include "lamella/layers/autograd/backward.h"

namespace torch::autograd {
inline lamella::Tensor make_variable(const lamella::Tensor& data, bool requires_grad = false) {
  return data.defined() ? data.detach().set_requires_grad(requires_grad) : data;
}
}  // namespace torch::autograd
