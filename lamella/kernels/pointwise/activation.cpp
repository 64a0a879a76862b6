// Activations of neural networks.
#include "lamella/kernels/pointwise/pointwise.h"

namespace lamella {
namespace {
constexpr uint32_t kPlain = TensorIteratorBase::kPointwise;
}

LAMELLA_META_OF(relu)(const Tensor& self) { build_unary(self, kPlain); }
LAMELLA_IMPL_OF(relu_cpu)(const Tensor&, const Tensor&) {
  Scalar zero(0);
  native::clamp_min_scalar_stub(device_type(), *this, &zero);
}
LAMELLA_UNARY(silu, kPlain)
LAMELLA_UNARY(mish, kPlain)
LAMELLA_UNARY(hardswish, kPlain)
LAMELLA_UNARY(hardsigmoid, kPlain)
LAMELLA_UNARY(log_sigmoid, kPlain)

LAMELLA_META_OF(leaky_relu)(const Tensor& self, const Scalar&) { build_unary(self, kPlain); }
LAMELLA_IMPL_OF(leaky_relu_cpu)(const Tensor&, const Scalar& negative_slope, const Tensor&) {
  native::leaky_relu_stub(device_type(), *this, &negative_slope);
}
LAMELLA_META_OF(elu)(const Tensor& self, const Scalar&, const Scalar&, const Scalar&) {
  build_unary(self, kPlain);
}
LAMELLA_IMPL_OF(elu_cpu)
(const Tensor&, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale,
 const Tensor&) {
  Scalar scalars[] = {alpha, scale, input_scale};
  native::elu_stub(device_type(), *this, scalars);
}
LAMELLA_META_OF(softplus)(const Tensor& self, const Scalar&, const Scalar&) {
  build_unary(self, kPlain);
}
LAMELLA_IMPL_OF(softplus_cpu)
(const Tensor&, const Scalar& beta, const Scalar& threshold, const Tensor&) {
  Scalar scalars[] = {beta, threshold};
  native::softplus_stub(device_type(), *this, scalars);
}
LAMELLA_META_OF(threshold)(const Tensor& self, const Scalar&, const Scalar&) {
  build_unary(self, kPlain);
}
LAMELLA_IMPL_OF(threshold_cpu)
(const Tensor&, const Scalar& threshold, const Scalar& value, const Tensor&) {
  Scalar scalars[] = {threshold, value};
  native::threshold_stub(device_type(), *this, scalars);
}
LAMELLA_META_OF(hardtanh)(const Tensor& self, const Scalar& min_val, const Scalar& max_val) {
  LAMELLA_CHECK(self.dtype() != kBool, op_name(), ": expected 'self' to be of numbers, got bool");
  LAMELLA_CHECK(self.dtype() != kByte || (min_val.toDouble() >= 0 && max_val.toDouble() >= 0),
                op_name(), ": expected bounds that fit uint8, got ", min_val, " and ", max_val);
  build_unary(self, kPlain);
}
LAMELLA_IMPL_OF(hardtanh_cpu)
(const Tensor&, const Scalar& min_val, const Scalar& max_val, const Tensor&) {
  Scalar scalars[] = {min_val, max_val};
  native::clamp_scalar_stub(device_type(), *this, scalars);
}
LAMELLA_META_OF(gelu)(const Tensor& self, std::string_view approximate) {
  LAMELLA_CHECK(approximate == "none" || approximate == "tanh", op_name(),
                ": expected 'approximate' to be 'none' or 'tanh', got '", approximate, "'");
  build_unary(self, kPlain);
}
LAMELLA_IMPL_OF(gelu_cpu)(const Tensor&, std::string_view approximate, const Tensor&) {
  if (approximate == "none") {
    native::gelu_stub(device_type(), *this, nullptr);
  } else {
    native::gelu_tanh_stub(device_type(), *this, nullptr);
  }
}

// ---- Shrinkage, prelu ----

namespace {
void check_lambda(const char* op, const Scalar& lambda) {
  LAMELLA_CHECK(lambda.toDouble() >= 0, op, ": expected 'lambd' not to be negative, got ", lambda);
}
}  // namespace

LAMELLA_META_OF(hardshrink)(const Tensor& self, const Scalar&) { build_unary(self, kPlain); }
LAMELLA_IMPL_OF(hardshrink_cpu)(const Tensor&, const Scalar& lambd, const Tensor&) {
  native::hardshrink_stub(device_type(), *this, &lambd);
}
LAMELLA_META_OF(softshrink)(const Tensor& self, const Scalar& lambd) {
  check_lambda(op_name(), lambd);
  build_unary(self, kPlain);
}
LAMELLA_IMPL_OF(softshrink_cpu)(const Tensor&, const Scalar& lambd, const Tensor&) {
  native::softshrink_stub(device_type(), *this, &lambd);
}
LAMELLA_META_OF(_prelu_kernel)(const Tensor& self, const Tensor& weight) {
  build_binary(self, weight, kPlain);
}
LAMELLA_IMPL_OF(_prelu_kernel_cpu)(const Tensor&, const Tensor&, const Tensor&) {
  native::prelu_stub(device_type(), *this, nullptr);
}

}  // namespace lamella
