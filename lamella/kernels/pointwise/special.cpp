// Special functions.
#include "lamella/kernels/pointwise/pointwise.h"

namespace lamella {
namespace {
constexpr uint32_t kFloating = TensorIteratorBase::kPointwiseFloat;
}

LAMELLA_UNARY(sinc, kFloating)
LAMELLA_UNARY(i0, kFloating)
#define LAMELLA_SPECIAL(name)                                                           \
  LAMELLA_META_OF(special_##name)(const Tensor& self) { build_unary(self, kFloating); } \
  LAMELLA_IMPL_OF(special_##name##_cpu)(const Tensor&, const Tensor&) {                 \
    native::name##_stub(device_type(), *this, nullptr);                                 \
  }
LAMELLA_SPECIAL(entr)
LAMELLA_SPECIAL(erfcx)
LAMELLA_SPECIAL(log_ndtr)
LAMELLA_SPECIAL(ndtri)
LAMELLA_SPECIAL(i0e)
LAMELLA_SPECIAL(i1)
LAMELLA_SPECIAL(i1e)
#define LAMELLA_SPECIAL_BINARY(name)                                                   \
  LAMELLA_META_OF(special_##name)(const Tensor& self, const Tensor& other) {           \
    build_binary(self, other, kFloating);                                              \
  }                                                                                    \
  LAMELLA_IMPL_OF(special_##name##_cpu)(const Tensor&, const Tensor&, const Tensor&) { \
    native::name##_stub(device_type(), *this, nullptr);                                \
  }
LAMELLA_SPECIAL_BINARY(zeta)
LAMELLA_SPECIAL_BINARY(xlog1py)

LAMELLA_META_OF(logit)(const Tensor& self, std::optional<double>) { build_unary(self, kFloating); }
LAMELLA_IMPL_OF(logit_cpu)(const Tensor&, std::optional<double> eps, const Tensor&) {
  Scalar bound = eps.value_or(-1.0);
  native::logit_stub(device_type(), *this, &bound);
}
LAMELLA_META_OF(polygamma)(int64_t n, const Tensor& self) {
  LAMELLA_CHECK(n >= 0, op_name(), ": expected 'n' not to be negative, got ", n);
  build_unary(self, kFloating);
}
LAMELLA_IMPL_OF(polygamma_cpu)(int64_t n, const Tensor&, const Tensor&) {
  Scalar order = n;
  if (n == 0) {
    native::digamma_stub(device_type(), *this, nullptr);
  } else {
    native::polygamma_stub(device_type(), *this, &order);
  }
}

}  // namespace lamella
