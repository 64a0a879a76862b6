// Pointwise operators made of others, type queries, and comparisons with tolerance.
#include <cmath>

#include "lamella/api/functions.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/kernels/type_promotion.h"
#include "lamella/native_functions.h"

namespace lamella::native {
namespace {

constexpr double kPi = 3.14159265358979323846;

// A number as a 0-d tensor that counts as a number in type promotion.
Tensor wrapped(const Scalar& number, Device device) {
  Tensor tensor = lamella::full({}, number, number.type(), std::nullopt, device, std::nullopt);
  set_flag(TensorImpl::of(tensor), LAMELLA_TENSOR_WRAPPED_NUMBER, true);
  return tensor;
}

}  // namespace

Tensor rsub(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return lamella::sub(other, self, alpha);
}
Tensor rsub(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  return lamella::sub(wrapped(other, self.device()), self, alpha);
}

Tensor float_power(const Tensor& self, const Tensor& exponent) {
  ScalarType type = self.is_complex() || exponent.is_complex() ? kComplexDouble : kDouble;
  return lamella::pow(self.to(type), exponent.to(type));
}
Tensor float_power(const Tensor& self, const Scalar& exponent) {
  bool is_complex = self.is_complex() || exponent.isComplex();
  Scalar wide = is_complex ? Scalar(exponent.toComplexDouble()) : Scalar(exponent.toDouble());
  return lamella::pow(self.to(is_complex ? kComplexDouble : kDouble), wide);
}

Tensor square(const Tensor& self) { return lamella::pow(self, 2); }
Tensor positive(const Tensor& self) {
  LAMELLA_CHECK(self.dtype() != kBool, "positive: expected 'self' not to be bool");
  return self;
}
Tensor isreal(const Tensor& self) {
  if (!self.is_complex()) return lamella::ones_like(self, kBool);
  return lamella::eq(lamella::imag(self), 0);
}
Tensor relu6(const Tensor& self) { return lamella::hardtanh(self, 0, 6); }
// The constants make mean 0 and variance 1 a fixed point (G. Klambauer et al., Self-Normalizing
// Neural Networks, 2017).
Tensor selu(const Tensor& self) {
  return lamella::elu(self, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946,
                      1.0);
}

Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other) {
  return lamella::where(condition, wrapped(self, condition.device()), other);
}
Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other) {
  return lamella::where(condition, self, wrapped(other, condition.device()));
}
Tensor where(const Tensor& condition, const Scalar& self, const Scalar& other) {
  return lamella::where(condition, wrapped(self, condition.device()),
                        wrapped(other, condition.device()));
}
// The indices of the true elements, as one list for each dimension.
std::vector<Tensor> where(const Tensor& condition) {
  Tensor at_least_1d = condition.dim() == 0 ? condition.unsqueeze(0) : condition;
  return lamella::unbind(lamella::nonzero(at_least_1d), 1);
}

// ---- Types ----

ScalarType result_type(const Tensor& tensor, const Tensor& other) {
  return result_type(static_cast<const TensorBase&>(tensor), static_cast<const TensorBase&>(other));
}
ScalarType result_type(const Tensor& tensor, const Scalar& other) {
  return result_type(static_cast<const TensorBase&>(tensor), other);
}
ScalarType result_type(const Scalar& scalar, const Tensor& tensor) {
  return result_type(static_cast<const TensorBase&>(tensor), scalar);
}
bool can_cast(ScalarType from, ScalarType to) { return lamella::can_cast(from, to); }
ScalarType promote_types(ScalarType type1, ScalarType type2) {
  return lamella::promote_types(type1, type2);
}

// ---- Closeness ----

// |self - other| <= atol + rtol |other|, or equal; an infinity is close only to itself.
Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  LAMELLA_CHECK(self.dtype() == other.dtype(), "isclose: expected 'other' to have dtype ",
                self.dtype(), ", got ", other.dtype());
  LAMELLA_CHECK(rtol >= 0, "isclose: expected 'rtol' not to be negative, got ", rtol);
  LAMELLA_CHECK(atol >= 0, "isclose: expected 'atol' not to be negative, got ", atol);
  Tensor close = lamella::eq(self, other);
  bool inexact = self.is_floating_point() || self.is_complex();
  if (equal_nan && inexact) {
    close = lamella::logical_or(close,
                                lamella::logical_and(lamella::isnan(self), lamella::isnan(other)));
  }
  if (rtol == 0 && atol == 0) return close;
  Tensor a = inexact ? self : self.to(get_default_dtype());
  Tensor b = inexact ? other : other.to(get_default_dtype());
  Tensor allowed = lamella::add(lamella::mul(lamella::abs(b), rtol), atol);
  Tensor distance = lamella::abs(lamella::sub(a, b));
  Tensor near = lamella::logical_and(lamella::isfinite(distance), lamella::le(distance, allowed));
  return lamella::logical_or(close, near);
}

bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  return lamella::all(lamella::isclose(self, other, rtol, atol, equal_nan)).item<bool>();
}

bool equal_cpu(const Tensor& self, const Tensor& other) {
  LAMELLA_CHECK(self.defined() && other.defined(), "equal: expected '",
                self.defined() ? "other" : "self", "' to be a tensor, got an undefined one");
  if (!(self.sizes() == other.sizes())) return false;
  if (self.numel() == 0) return true;
  return lamella::all(lamella::eq(self, other)).item<bool>();
}

Tensor& square_(Tensor& self) { return self.pow_(2); }

Tensor deg2rad(const Tensor& self) { return lamella::mul(self, kPi / 180); }
Tensor& deg2rad_(Tensor& self) { return self.mul_(kPi / 180); }
Tensor rad2deg(const Tensor& self) { return lamella::mul(self, 180 / kPi); }
Tensor& rad2deg_(Tensor& self) { return self.mul_(180 / kPi); }
// True for a floating-point `self` and integer exponents: the result then keeps the dtype of
// `self`, and the power of two is computed in float32 or float64, so that it does not overflow
// earlier.
static bool has_whole_exponent(const Tensor& self, const Tensor& other) {
  return is_floating_point(self.scalar_type()) && is_integral(other.scalar_type(), false);
}
static Tensor power_of_two(const Tensor& self, const Tensor& other) {
  if (!has_whole_exponent(self, other)) return lamella::pow(2.0, other);
  return lamella::exp2(other.to(self.scalar_type() == kDouble ? kDouble : kFloat));
}
Tensor ldexp(const Tensor& self, const Tensor& other) {
  Tensor result = lamella::mul(self, power_of_two(self, other));
  return has_whole_exponent(self, other) ? result.to(self.scalar_type()) : result;
}
Tensor& ldexp_(Tensor& self, const Tensor& other) { return self.mul_(power_of_two(self, other)); }
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
Tensor& mvlgamma_(Tensor& self, int64_t p) { return self.copy_(lamella::mvlgamma(self, p)); }
// Computes out of place first, because the gradient needs the elements that are overwritten.
Tensor& polygamma_(Tensor& self, int64_t n) {
  return self.copy_(lamella::polygamma(n, self.clone()));
}

}  // namespace lamella::native
