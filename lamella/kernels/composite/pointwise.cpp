// Pointwise operators made of others, and questions about types and closeness.
#include <cmath>

#include "lamella/api/functions.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/kernels/type_promotion.h"
#include "lamella/native_functions.h"

namespace lamella::native {
namespace {

// A number as a tensor that is weak in promotion.
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
  LAMELLA_CHECK(self.dtype() != kBool, "positive: expected 'self' to be of numbers, got bool");
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
Tensor clip(const Tensor& self, const std::optional<Scalar>& min,
            const std::optional<Scalar>& max) {
  return lamella::clamp(self, min, max);
}
Tensor clip(const Tensor& self, const std::optional<Tensor>& min,
            const std::optional<Tensor>& max) {
  return lamella::clamp(self, min, max);
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
// The places where the condition holds: one list of indices for each dimension.
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

// |self - other| <= atol + rtol |other|, or equal; infinities are close to themselves alone.
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
  if (!(self.sizes() == other.sizes())) return false;
  if (self.numel() == 0) return true;
  return lamella::all(lamella::eq(self, other)).item<bool>();
}

}  // namespace lamella::native
