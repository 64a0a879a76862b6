// torch::autograd::UndefinedGrad: an identity whose backward passes undefined gradients on.
#pragma once
#include <torch/csrc/autograd/custom_function.h>

namespace torch::autograd {
struct UndefinedGrad : lamella::autograd::Function<UndefinedGrad> {
  static variable_list forward(lamella::autograd::AutogradContext*, variable_list inputs) {
    return inputs;
  }
  static variable_list backward(lamella::autograd::AutogradContext* ctx, variable_list grads) {
    ctx->set_materialize_grads(false);
    return variable_list(grads.size());
  }
  variable_list apply(variable_list inputs) { return Function::apply(std::move(inputs)); }
};
}  // namespace torch::autograd
