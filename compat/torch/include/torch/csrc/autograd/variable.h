// torch::autograd::Variable, variable_list, tensor_list.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include "lamella/layers/autograd/backward.h"
#include "lamella/layers/autograd/grad_mode.h"

namespace torch::autograd {
using lamella::CreationMeta;
using lamella::GradMode;
using lamella::InferenceMode;
using AutogradMeta = lamella::AutogradPart;
using DifferentiableViewMeta = lamella::AutogradPart;
inline lamella::Tensor make_variable(const lamella::Tensor& data, bool requires_grad = false) {
  return data.defined() ? data.detach().set_requires_grad(requires_grad) : data;
}
}  // namespace torch::autograd
