// torch::autograd::InputMetadata: what the gradient of a tensor has to be like; and
// validate_outputs, which makes gradients so.
#pragma once
#include <ATen/ExpandUtils.h>
#include <torch/csrc/autograd/variable.h>

namespace torch::autograd {
class InputMetadata {
 public:
  InputMetadata() = default;
  explicit InputMetadata(const lamella::Tensor& tensor)
      : options_(tensor.options()), shape_(tensor.sizes().vec()) {}
  const lamella::TensorOptions& options() const { return options_; }
  lamella::TypeMeta dtype() const { return options_.dtype(); }
  lamella::Device device() const { return options_.device(); }
  lamella::IntArrayRef shape_as_dim_vector() const { return shape_; }
  lamella::Tensor zeros_like() const { return lamella::zeros(shape_, options_); }

 private:
  lamella::TensorOptions options_;
  std::vector<int64_t> shape_;
};

// Gradients of other shapes are summed where these shapes were broadcast, and those of other dtypes
// converted; error, in the words of `format_error`, for all others.
template <class F>
void validate_outputs(const std::vector<std::optional<InputMetadata>>& metadata,
                      variable_list& grads, const F& format_error) {
  auto check = [&](bool is_right, const auto&... text) {
    LAMELLA_CHECK(is_right, format_error(lamella::str(text...)));
  };
  check(grads.size() == metadata.size(), "expected ", metadata.size(), " gradients, got ",
        grads.size());
  for (size_t i = 0; i < grads.size(); ++i) {
    lamella::Tensor& grad = grads[i];
    if (!metadata[i] || !grad.defined()) continue;
    const InputMetadata& wanted = *metadata[i];
    if (grad.sizes() != wanted.shape_as_dim_vector()) {
      check(at::is_expandable_to(wanted.shape_as_dim_vector(), grad.sizes()), "expected gradient ",
            i, " of shape ", wanted.shape_as_dim_vector(), ", got ", grad.sizes());
      grad = at::sum_to(grad, wanted.shape_as_dim_vector());
    }
    check(grad.device() == wanted.device(), "expected gradient ", i, " on ", wanted.device(),
          ", got ", grad.device());
    grad = grad.to(wanted.dtype().toScalarType());
  }
}
}  // namespace torch::autograd
