// Activations of neural networks.
#include "lamella/kernels/pointwise/pointwise.h"

namespace lamella {
namespace {
constexpr uint32_t kPromoted = TensorIteratorBase::kPointwise;
}

LAMELLA_META_OF(relu)(const Tensor& self) { build_unary(self, kPromoted); }
LAMELLA_IMPL_OF(relu_cpu)(const Tensor&, const Tensor&) {
  Scalar zero(0);
  native::pointwise_loop<"clamp_min_scalar">(device_type(), *this, &zero);
}

LAMELLA_META_OF(hardtanh)(const Tensor& self, const Scalar& min_val, const Scalar& max_val) {
  LAMELLA_CHECK(self.dtype() != kBool, op_name(), ": expected 'self' not to be bool");
  LAMELLA_CHECK(self.dtype() != kByte || (min_val.toDouble() >= 0 && max_val.toDouble() >= 0),
                op_name(), ": expected bounds that fit uint8, got ", min_val, " and ", max_val);
  build_unary(self, kPromoted);
}
LAMELLA_IMPL_OF(hardtanh_cpu)
(const Tensor&, const Scalar& min_val, const Scalar& max_val, const Tensor&) {
  Scalar scalars[] = {min_val, max_val};
  native::pointwise_loop<"clamp_scalar">(device_type(), *this, scalars);
}
LAMELLA_META_OF(gelu)(const Tensor& self, std::string_view approximate) {
  LAMELLA_CHECK(approximate == "none" || approximate == "tanh", op_name(),
                ": expected 'approximate' to be 'none' or 'tanh', got '", approximate, "'");
  build_unary(self, kPromoted);
}
LAMELLA_IMPL_OF(gelu_cpu)(const Tensor&, std::string_view approximate, const Tensor&) {
  if (approximate == "none") {
    native::pointwise_loop<"gelu">(device_type(), *this, nullptr);
  } else {
    native::pointwise_loop<"gelu_tanh">(device_type(), *this, nullptr);
  }
}

// ---- Shrinkage, prelu ----

namespace {
void check_lambda(const char* op, const Scalar& lambda) {
  LAMELLA_CHECK(lambda.toDouble() >= 0, op, ": expected 'lambd' not to be negative, got ", lambda);
}
}  // namespace

LAMELLA_META_OF(softshrink)(const Tensor& self, const Scalar& lambd) {
  check_lambda(op_name(), lambd);
  build_unary(self, kPromoted);
}
LAMELLA_IMPL_OF(softshrink_cpu)(const Tensor&, const Scalar& lambd, const Tensor&) {
  native::pointwise_loop<"softshrink">(device_type(), *this, &lambd);
}

}  // namespace lamella
