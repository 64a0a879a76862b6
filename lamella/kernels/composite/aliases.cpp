// Other names of pointwise operators, and those that are one call of another.
#include <cmath>

#include "lamella/api/functions.h"
#include "lamella/native_functions.h"

namespace lamella::native {
namespace {
constexpr double kPi = 3.14159265358979323846;
using MaybeNumber = std::optional<Scalar>;
using MaybeTensor = std::optional<Tensor>;
using Mode = std::optional<std::string_view>;
}  // namespace

#define LAMELLA_ALIAS_UNARY(name, target)                           \
  Tensor name(const Tensor& self) { return lamella::target(self); } \
  Tensor& name##_(Tensor& self) { return self.target##_(); }
LAMELLA_ALIAS_UNARY(arccos, acos)
LAMELLA_ALIAS_UNARY(arcsin, asin)
LAMELLA_ALIAS_UNARY(arctan, atan)
LAMELLA_ALIAS_UNARY(arccosh, acosh)
LAMELLA_ALIAS_UNARY(arcsinh, asinh)
LAMELLA_ALIAS_UNARY(arctanh, atanh)
LAMELLA_ALIAS_UNARY(absolute, abs)
LAMELLA_ALIAS_UNARY(negative, neg)
LAMELLA_ALIAS_UNARY(fix, trunc)

#define LAMELLA_ALIAS_BINARY(name, target)                                                      \
  Tensor name(const Tensor& self, const Tensor& other) { return lamella::target(self, other); } \
  Tensor name(const Tensor& self, const Scalar& other) { return lamella::target(self, other); } \
  Tensor& name##_(Tensor& self, const Tensor& other) { return self.target##_(other); }          \
  Tensor& name##_(Tensor& self, const Scalar& other) { return self.target##_(other); }
LAMELLA_ALIAS_BINARY(multiply, mul)
LAMELLA_ALIAS_BINARY(divide, div)
LAMELLA_ALIAS_BINARY(true_divide, div)
LAMELLA_ALIAS_BINARY(greater, gt)
LAMELLA_ALIAS_BINARY(greater_equal, ge)
LAMELLA_ALIAS_BINARY(less, lt)
LAMELLA_ALIAS_BINARY(less_equal, le)
LAMELLA_ALIAS_BINARY(not_equal, ne)

Tensor divide(const Tensor& self, const Tensor& other, Mode mode) {
  return lamella::div(self, other, mode);
}
Tensor divide(const Tensor& self, const Scalar& other, Mode mode) {
  return lamella::div(self, other, mode);
}
Tensor& divide_(Tensor& self, const Tensor& other, Mode mode) { return self.div_(other, mode); }
Tensor& divide_(Tensor& self, const Scalar& other, Mode mode) { return self.div_(other, mode); }
Tensor subtract(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return lamella::sub(self, other, alpha);
}
Tensor subtract(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  return lamella::sub(self, other, alpha);
}
Tensor& subtract_(Tensor& self, const Tensor& other, const Scalar& alpha) {
  return self.sub_(other, alpha);
}
Tensor& subtract_(Tensor& self, const Scalar& other, const Scalar& alpha) {
  return self.sub_(other, alpha);
}
Tensor arctan2(const Tensor& self, const Tensor& other) { return lamella::atan2(self, other); }
Tensor& arctan2_(Tensor& self, const Tensor& other) { return self.atan2_(other); }
Tensor& clip_(Tensor& self, const MaybeNumber& min, const MaybeNumber& max) {
  return self.clamp_(min, max);
}
Tensor& clip_(Tensor& self, const MaybeTensor& min, const MaybeTensor& max) {
  return self.clamp_(min, max);
}
Tensor& square_(Tensor& self) { return self.pow_(2); }

Tensor deg2rad(const Tensor& self) { return lamella::mul(self, kPi / 180); }
Tensor& deg2rad_(Tensor& self) { return self.mul_(kPi / 180); }
Tensor rad2deg(const Tensor& self) { return lamella::mul(self, 180 / kPi); }
Tensor& rad2deg_(Tensor& self) { return self.mul_(180 / kPi); }
Tensor ldexp(const Tensor& self, const Tensor& other) {
  return lamella::mul(self, lamella::pow(2.0, other));
}
Tensor& ldexp_(Tensor& self, const Tensor& other) { return self.mul_(lamella::pow(2.0, other)); }
Tensor float_power(const Scalar& self, const Tensor& exponent) {
  if (self.equal(1)) {
    return lamella::ones_like(exponent,
                              exponent.is_complex() || self.isComplex() ? kComplexDouble : kDouble);
  }
  if (exponent.is_complex() || self.isComplex()) {
    return lamella::pow(Scalar(self.toComplexDouble()), exponent.to(kComplexDouble));
  }
  return lamella::pow(Scalar(self.toDouble()), exponent.to(kDouble));
}
namespace {
void check_wide(const Tensor& self, bool wants_complex) {
  ScalarType wide = wants_complex ? kComplexDouble : kDouble;
  LAMELLA_CHECK(self.dtype() == wide, "float_power_: expected 'self' to have dtype ", wide,
                ", got ", self.dtype());
}
}  // namespace
Tensor& float_power_(Tensor& self, const Tensor& exponent) {
  check_wide(self, self.is_complex() || exponent.is_complex());
  return self.pow_(exponent.to(self.scalar_type()));
}
Tensor& float_power_(Tensor& self, const Scalar& exponent) {
  check_wide(self, self.is_complex() || exponent.isComplex());
  return self.is_complex() ? self.pow_(Scalar(exponent.toComplexDouble()))
                           : self.pow_(Scalar(exponent.toDouble()));
}
// log of the multivariate gamma function: a constant and the sum of lgamma(x - i / 2), i < p.
Tensor mvlgamma(const Tensor& self, int64_t p) {
  LAMELLA_CHECK(p >= 1, "mvlgamma: expected 'p' to be positive, got ", p);
  double dims = static_cast<double>(p);
  ScalarType type = is_integral(self.dtype(), true) ? kFloat : self.dtype();
  Tensor halves = lamella::arange(0, p, type, std::nullopt, self.device(), std::nullopt);
  Tensor terms = lamella::lgamma(self.unsqueeze(-1).sub(halves.mul(0.5)));
  return terms.sum(-1).add(dims * (dims - 1) / 4 * std::log(kPi));
}

// ---- lamella.special ----

#define LAMELLA_SPECIAL_ALIAS(name, target) \
  Tensor special_##name(const Tensor& self) { return lamella::target(self); }
LAMELLA_SPECIAL_ALIAS(expit, sigmoid)
LAMELLA_SPECIAL_ALIAS(erf, erf)
LAMELLA_SPECIAL_ALIAS(erfc, erfc)
LAMELLA_SPECIAL_ALIAS(erfinv, erfinv)
LAMELLA_SPECIAL_ALIAS(exp2, exp2)
LAMELLA_SPECIAL_ALIAS(expm1, expm1)
LAMELLA_SPECIAL_ALIAS(log1p, log1p)
LAMELLA_SPECIAL_ALIAS(digamma, digamma)
LAMELLA_SPECIAL_ALIAS(psi, digamma)
LAMELLA_SPECIAL_ALIAS(gammaln, lgamma)
LAMELLA_SPECIAL_ALIAS(i0, i0)
LAMELLA_SPECIAL_ALIAS(sinc, sinc)
Tensor special_logit(const Tensor& self, std::optional<double> eps) {
  return lamella::logit(self, eps);
}
Tensor special_polygamma(int64_t n, const Tensor& self) { return lamella::polygamma(n, self); }
Tensor special_xlogy(const Tensor& self, const Tensor& other) {
  return lamella::xlogy(self, other);
}
Tensor special_xlogy(const Scalar& self, const Tensor& other) {
  return lamella::xlogy(self, other);
}
Tensor special_xlogy(const Tensor& self, const Scalar& other) {
  return lamella::xlogy(self, other);
}
Tensor special_round(const Tensor& self, int64_t decimals) {
  return lamella::round(self, decimals);
}
Tensor special_logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim) {
  return lamella::logsumexp(self, dim, keepdim);
}
Tensor special_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return lamella::softmax(self, dim, dtype);
}
Tensor special_log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return lamella::log_softmax(self, dim, dtype);
}
Tensor special_multigammaln(const Tensor& self, int64_t p) { return lamella::mvlgamma(self, p); }

}  // namespace lamella::native
