// Gradients of activations.
#include "lamella/kernels/pointwise/pointwise.h"

namespace lamella {
namespace {
constexpr uint32_t kPlain = TensorIteratorBase::kPointwise;
constexpr const char* kNames[] = {"grad_output", "self"};
constexpr const char* kOutputNames[] = {"grad_output", "output"};
}  // namespace

// Of the gradient and a tensor, which nearly always have one shape.
#define LAMELLA_BUILD_BACKWARD(grad, x, names)    \
  if ((grad).sizes().equals((x).sizes())) {       \
    build_binary(grad, x, kPlain);                \
  } else {                                        \
    const TensorBase* inputs[] = {&(grad), &(x)}; \
    build_pointwise(inputs, 2, names, kPlain);    \
  }
#define LAMELLA_BACKWARD(op, names)                                                              \
  LAMELLA_META_OF(op)                                                                            \
  (const Tensor& grad, const Tensor& x){LAMELLA_BUILD_BACKWARD(grad, x, names)} LAMELLA_IMPL_OF( \
      op##_cpu)(const Tensor&, const Tensor&, const Tensor&) {                                   \
    native::op##_stub(device_type(), *this, nullptr);                                            \
  }
LAMELLA_BACKWARD(sigmoid_backward, kOutputNames)
LAMELLA_BACKWARD(tanh_backward, kOutputNames)
LAMELLA_BACKWARD(silu_backward, kNames)
LAMELLA_BACKWARD(mish_backward, kNames)
LAMELLA_BACKWARD(hardswish_backward, kNames)
LAMELLA_BACKWARD(hardsigmoid_backward, kNames)

// One parameter, or two.
#define LAMELLA_BACKWARD_PARAM(op, stub)                                                   \
  LAMELLA_META_OF(op)                                                                      \
  (const Tensor& grad, const Tensor& self, const Scalar&){LAMELLA_BUILD_BACKWARD(          \
      grad, self, kNames)} LAMELLA_IMPL_OF(op##_cpu)(const Tensor&, const Tensor&,         \
                                                     const Scalar& value, const Tensor&) { \
    native::stub(device_type(), *this, &value);                                            \
  }
LAMELLA_BACKWARD_PARAM(threshold_backward, threshold_backward_stub)
LAMELLA_BACKWARD_PARAM(hardshrink_backward, shrink_backward_stub)
LAMELLA_BACKWARD_PARAM(softshrink_backward, shrink_backward_stub)
#define LAMELLA_BACKWARD_PARAMS(op)                                                              \
  LAMELLA_META_OF(op)                                                                            \
  (const Tensor& grad, const Tensor& self, const Scalar&, const Scalar&){LAMELLA_BUILD_BACKWARD( \
      grad, self, kNames)} LAMELLA_IMPL_OF(op##_cpu)(const Tensor&, const Tensor&,               \
                                                     const Scalar& first, const Scalar& second,  \
                                                     const Tensor&) {                            \
    Scalar scalars[] = {first, second};                                                          \
    native::op##_stub(device_type(), *this, scalars);                                            \
  }
LAMELLA_BACKWARD_PARAMS(hardtanh_backward)
LAMELLA_BACKWARD_PARAMS(softplus_backward)

LAMELLA_META_OF(leaky_relu_backward)
(const Tensor& grad, const Tensor& self, const Scalar& negative_slope, bool self_is_result) {
  LAMELLA_CHECK(!self_is_result || negative_slope.toDouble() >= 0, op_name(),
                ": expected 'negative_slope' not to be negative where 'self' is the result, got ",
                negative_slope);
  LAMELLA_BUILD_BACKWARD(grad, self, kNames)
}
LAMELLA_IMPL_OF(leaky_relu_backward_cpu)
(const Tensor&, const Tensor&, const Scalar& negative_slope, bool, const Tensor&) {
  native::leaky_relu_backward_stub(device_type(), *this, &negative_slope);
}

LAMELLA_META_OF(elu_backward)
(const Tensor& grad, const Scalar& alpha, const Scalar&, const Scalar&, bool is_result,
 const Tensor& self_or_result) {
  static constexpr const char* names[] = {"grad_output", "self_or_result"};
  LAMELLA_CHECK(!is_result || alpha.toDouble() >= 0, op_name(),
                ": expected 'alpha' not to be negative where the result is given, got ", alpha);
  LAMELLA_BUILD_BACKWARD(grad, self_or_result, names)
}
LAMELLA_IMPL_OF(elu_backward_cpu)
(const Tensor&, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale, bool is_result,
 const Tensor&, const Tensor&) {
  Scalar scalars[] = {alpha, scale, input_scale, is_result ? 1 : 0};
  native::elu_backward_stub(device_type(), *this, scalars);
}

LAMELLA_META_OF(gelu_backward)
(const Tensor& grad, const Tensor& self, std::string_view approximate) {
  LAMELLA_CHECK(approximate == "none" || approximate == "tanh", op_name(),
                ": expected 'approximate' to be 'none' or 'tanh', got '", approximate, "'");
  LAMELLA_BUILD_BACKWARD(grad, self, kNames)
}
LAMELLA_IMPL_OF(gelu_backward_cpu)
(const Tensor&, const Tensor&, std::string_view approximate, const Tensor&) {
  if (approximate == "none") {
    native::gelu_backward_stub(device_type(), *this, nullptr);
  } else {
    native::gelu_tanh_backward_stub(device_type(), *this, nullptr);
  }
}

// PyTorch's CPU kernel keeps an intermediate result in `buffer`; this one needs none.
LAMELLA_META_OF(log_sigmoid_backward)
(const Tensor& grad, const Tensor& self, const Tensor&){LAMELLA_BUILD_BACKWARD(
    grad, self, kNames)} LAMELLA_IMPL_OF(log_sigmoid_backward_cpu)(const Tensor&, const Tensor&,
                                                                   const Tensor&, const Tensor&) {
  native::log_sigmoid_backward_stub(device_type(), *this, nullptr);
}

LAMELLA_META_OF(logit_backward)
(const Tensor& grad, const Tensor& self, std::optional<double>){LAMELLA_BUILD_BACKWARD(
    grad, self, kNames)} LAMELLA_IMPL_OF(logit_backward_cpu)(const Tensor&, const Tensor&,
                                                             std::optional<double> eps,
                                                             const Tensor&) {
  Scalar bound = eps.value_or(-1.0);
  native::logit_backward_stub(device_type(), *this, &bound);
}

}  // namespace lamella
