// Gradients of activations.
#include "lamella/kernels/pointwise/pointwise.h"

namespace lamella {
namespace {
constexpr uint32_t kPromoted = TensorIteratorBase::kPointwise;
constexpr const char* kNames[] = {"grad_output", "self"};
}  // namespace

LAMELLA_META_OF(leaky_relu_backward)
(const Tensor& grad, const Tensor& self, const Scalar& negative_slope, bool self_is_result) {
  LAMELLA_CHECK(!self_is_result || negative_slope.toDouble() >= 0, op_name(),
                ": expected 'negative_slope' not to be negative where 'self' is the result, got ",
                negative_slope);
  build_binary(grad, self, kPromoted, kNames);
}
LAMELLA_IMPL_OF(leaky_relu_backward_cpu)
(const Tensor&, const Tensor&, const Scalar& negative_slope, bool, const Tensor&) {
  native::pointwise_loop<"leaky_relu_backward">(device_type(), *this, &negative_slope);
}

LAMELLA_META_OF(elu_backward)
(const Tensor& grad, const Scalar& alpha, const Scalar&, const Scalar&, bool is_result,
 const Tensor& self_or_result) {
  static constexpr const char* names[] = {"grad_output", "self_or_result"};
  LAMELLA_CHECK(!is_result || alpha.toDouble() >= 0, op_name(),
                ": expected 'alpha' not to be negative where the result is given, got ", alpha);
  build_binary(grad, self_or_result, kPromoted, names);
}
LAMELLA_IMPL_OF(elu_backward_cpu)
(const Tensor&, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale, bool is_result,
 const Tensor&, const Tensor&) {
  Scalar scalars[] = {alpha, scale, input_scale, is_result ? 1 : 0};
  native::pointwise_loop<"elu_backward">(device_type(), *this, scalars);
}

LAMELLA_META_OF(gelu_backward)
(const Tensor& grad, const Tensor& self, std::string_view approximate) {
  LAMELLA_CHECK(approximate == "none" || approximate == "tanh", op_name(),
                ": expected 'approximate' to be 'none' or 'tanh', got '", approximate, "'");
  build_binary(grad, self, kPromoted, kNames);
}
LAMELLA_IMPL_OF(gelu_backward_cpu)
(const Tensor&, const Tensor&, std::string_view approximate, const Tensor&) {
  if (approximate == "none") {
    native::pointwise_loop<"gelu_backward">(device_type(), *this, nullptr);
  } else {
    native::pointwise_loop<"gelu_tanh_backward">(device_type(), *this, nullptr);
  }
}

// PyTorch's CPU kernel keeps an intermediate result in `buffer`; this one needs none.
LAMELLA_META_OF(log_sigmoid_backward)
(const Tensor& grad, const Tensor& self, const Tensor&) {
  build_binary(grad, self, kPromoted, kNames);
}
LAMELLA_IMPL_OF(log_sigmoid_backward_cpu)
(const Tensor&, const Tensor&, const Tensor&, const Tensor&) {
  native::pointwise_loop<"log_sigmoid_backward">(device_type(), *this, nullptr);
}

LAMELLA_META_OF(logit_backward)
(const Tensor& grad, const Tensor& self, std::optional<double>) {
  build_binary(grad, self, kPromoted, kNames);
}
LAMELLA_IMPL_OF(logit_backward_cpu)
(const Tensor&, const Tensor&, std::optional<double> eps, const Tensor&) {
  Scalar bound = eps.value_or(-1.0);
  native::pointwise_loop<"logit_backward">(device_type(), *this, &bound);
}

}  // namespace lamella
