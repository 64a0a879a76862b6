// torch::autograd::any_variable_requires_grad, torch::autograd::increment_version.
#pragma once
#include <torch/csrc/autograd/variable.h>

namespace torch::autograd {
inline bool any_variable_requires_grad(const variable_list& variables) {
  for (const Variable& variable : variables) {
    if (variable.requires_grad()) return true;
  }
  return false;
}
// Tells that a kernel wrote to the tensor's memory.
inline void increment_version(const lamella::Tensor& tensor) {
  lamella_tensor_bump_version(tensor.impl());
}
}  // namespace torch::autograd
