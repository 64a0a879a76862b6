// Unary operators whose kernels check or choose more than an entry says.
#include <cmath>
#include <limits>

#include "lamella/kernels/pointwise/pointwise.h"

namespace lamella {
namespace {
constexpr uint32_t kPromoted = TensorIteratorBase::kPointwise;
constexpr uint32_t kFloating = TensorIteratorBase::kPointwiseFloat;
}  // namespace

LAMELLA_META_OF(neg)(const Tensor& self) {
  LAMELLA_CHECK(self.dtype() != kBool, op_name(),
                ": expected 'self' not to be bool; use logical_not or ~");
  build_unary(self, kPromoted);
}
LAMELLA_IMPL_OF(neg_cpu)(const Tensor&, const Tensor&) {
  native::pointwise_loop<"neg">(device_type(), *this, nullptr);
}
LAMELLA_META_OF(abs)(const Tensor& self) {
  LAMELLA_CHECK(output_mode() != OutputMode::kInplace || !self.is_complex(), op_name(),
                ": expected 'self' to be real, got ", self.dtype());
  build_unary(self, kPromoted | kRealOutput);
}
LAMELLA_IMPL_OF(abs_cpu)(const Tensor&, const Tensor&) {
  native::pointwise_loop<"abs">(device_type(), *this, nullptr);
}
LAMELLA_META_OF(sign)(const Tensor& self) {
  LAMELLA_CHECK(!self.is_complex(), op_name(), ": expected 'self' to be real, got ", self.dtype(),
                "; use sgn");
  build_unary(self, kPromoted);
}
LAMELLA_IMPL_OF(sign_cpu)(const Tensor&, const Tensor&) {
  native::pointwise_loop<"sign">(device_type(), *this, nullptr);
}
LAMELLA_META_OF(angle)(const Tensor& self) { build_unary(self, kFloating | kRealOutput); }
LAMELLA_IMPL_OF(angle_cpu)(const Tensor&, const Tensor&) {
  native::pointwise_loop<"angle">(device_type(), *this, nullptr);
}

#define LAMELLA_ROUNDING(op)                                                           \
  LAMELLA_META_OF(op)(const Tensor& self) {                                            \
    LAMELLA_CHECK(!self.is_complex(), op_name(), ": expected 'self' to be real, got ", \
                  self.dtype());                                                       \
    build_unary(self, kPromoted);                                                      \
  }                                                                                    \
  LAMELLA_IMPL_OF(op##_cpu)(const Tensor&, const Tensor&) {                            \
    native::pointwise_loop<#op>(device_type(), *this, nullptr);                        \
  }
LAMELLA_ROUNDING(ceil)
LAMELLA_ROUNDING(floor)
LAMELLA_ROUNDING(round)
LAMELLA_ROUNDING(trunc)
LAMELLA_ROUNDING(frac)
LAMELLA_META_OF2(round, decimals)(const Tensor& self, int64_t decimals) {
  build_unary(self, kPromoted);
}
LAMELLA_IMPL_OF(round_decimals_cpu)(const Tensor&, int64_t decimals, const Tensor&) {
  bool negative = decimals < 0;
  Scalar scalars[] = {std::pow(10.0, static_cast<double>(negative ? -decimals : decimals)),
                      negative ? 1 : 0};
  native::pointwise_loop<"round_decimals">(device_type(), *this, scalars);
}

// ---- Elementary and special functions: integers become floating point ----

// ---- nan_to_num ----

LAMELLA_META_OF(nan_to_num)
(const Tensor& self, std::optional<double>, std::optional<double>, std::optional<double>) {
  build_unary(self, kPromoted);
}
LAMELLA_IMPL_OF(nan_to_num_cpu)
(const Tensor&, std::optional<double> nan, std::optional<double> posinf,
 std::optional<double> neginf, const Tensor&) {
  // Integers have neither NaN nor infinities.
  Scalar scalars[3] = {0, 0, 0};
  ScalarType type = to_real_type(common_dtype());
  if (is_floating_point(type)) {
    double most =
        type == kDouble ? std::numeric_limits<double>::max()
        : type == kHalf ? 65504.0
        : type == kBFloat16
            ? static_cast<double>(static_cast<float>(std::numeric_limits<BFloat16>::max()))
            : static_cast<double>(std::numeric_limits<float>::max());
    auto fit = [&](double x) {
      return type == kDouble ? x : static_cast<double>(static_cast<float>(x));
    };
    scalars[0] = fit(nan.value_or(0.0));
    scalars[1] = fit(posinf.value_or(most));
    scalars[2] = fit(neginf.value_or(-most));
    if (is_complex(common_dtype())) {
      for (Scalar& s : scalars) s = complex<double>(s.toDouble(), s.toDouble());
    }
  }
  native::pointwise_loop<"nan_to_num">(device_type(), *this, scalars);
}

// ---- logit, polygamma ----

LAMELLA_META_OF(logit)(const Tensor& self, std::optional<double>) { build_unary(self, kFloating); }
LAMELLA_IMPL_OF(logit_cpu)(const Tensor&, std::optional<double> eps, const Tensor&) {
  Scalar bound = eps.value_or(-1.0);
  native::pointwise_loop<"logit">(device_type(), *this, &bound);
}
LAMELLA_META_OF(polygamma)(int64_t n, const Tensor& self) {
  LAMELLA_CHECK(n >= 0, op_name(), ": expected 'n' not to be negative, got ", n);
  build_unary(self, kFloating);
}
LAMELLA_IMPL_OF(polygamma_cpu)(int64_t n, const Tensor&, const Tensor&) {
  Scalar order = n;
  if (n == 0) {
    native::pointwise_loop<"digamma">(device_type(), *this, nullptr);
  } else if (n == 1) {
    native::pointwise_loop<"trigamma">(device_type(), *this, nullptr);
  } else {
    native::pointwise_loop<"polygamma">(device_type(), *this, &order);
  }
}

}  // namespace lamella
