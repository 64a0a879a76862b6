// torch::autograd::any_variable_requires_grad.
#pragma once
#include <torch/csrc/autograd/variable.h>

namespace torch::autograd {
inline bool any_variable_requires_grad(const variable_list& variables) {
  for (const Variable& variable : variables) {
    if (variable.requires_grad()) return true;
  }
  return false;
}
}  // namespace torch::autograd
