// torch::autograd::any_variable_requires_grad, torch::autograd::increment_version.
#pragma once
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/variable.h>

namespace torch::autograd {
inline bool any_variable_requires_grad(const variable_list& variables) {
  for (const Variable& variable : variables) {
    if (variable.requires_grad()) return true;
  }
  return false;
}
// True if gradients are enabled and a tensor among the arguments requires them.
template <class... A>
bool compute_requires_grad(const A&... arguments) {
  auto requires_grad = [](const auto& argument) {
    using T = std::decay_t<decltype(argument)>;
    if constexpr (std::is_base_of_v<lamella::TensorBase, T>) {
      return argument.defined() && argument.requires_grad();
    } else if constexpr (std::is_convertible_v<T, lamella::TensorList>) {
      bool any = false;
      for (const lamella::Tensor& tensor : lamella::TensorList(argument)) {
        any = any || (tensor.defined() && tensor.requires_grad());
      }
      return any;
    } else {
      return false;
    }
  };
  return c10::GradMode::is_enabled() && (requires_grad(arguments) || ...);
}
// RuntimeError for a leaf that requires gradients: it must not be written in place.
inline void check_inplace(const lamella::Tensor& tensor, bool requires_grad) {
  LAMELLA_CHECK(!requires_grad || !tensor.requires_grad() || !tensor.is_leaf(),
                "expected a tensor to write that is no leaf that requires gradients; "
                "write to a copy of it");
}
// Reports that a kernel wrote to the tensor's memory.
inline void increment_version(const lamella::Tensor& tensor) {
  lamella_tensor_bump_version(tensor.impl());
}
namespace impl {
inline void bump_version(const lamella::Tensor& tensor) { increment_version(tensor); }
}  // namespace impl
}  // namespace torch::autograd
