// Helpers for the derivatives of pointwise operators.
#include "lamella/layers/autograd/formulas/pointwise.h"

#include <cmath>

namespace lamella {
namespace {

constexpr double kPi = 3.14159265358979323846;

bool given(const MaybeTensor& x) { return x.has_value() && x->defined(); }
Tensor zeros_for(const Tensor& grad) { return lamella::zeros_like(grad); }

}  // namespace

// ---- Arithmetic ----

Tensor subtracted(const Tensor& grad, const Scalar& alpha) { return scaled(grad.neg(), alpha); }

Tensor divisor_backward(const Tensor& grad, const Tensor& self, const Tensor& other) {
  return -grad * conj_of(self / other / other);
}
Tensor rounded_dividend_backward(const Tensor& grad, const Tensor& other, const MaybeMode& mode) {
  return mode.has_value() ? zeros_for(grad) : grad / conj_of(other);
}
Tensor rounded_divisor_backward(const Tensor& grad, const Tensor& self, const Tensor& other,
                                const MaybeMode& mode) {
  return mode.has_value() ? zeros_for(grad) : divisor_backward(grad, self, other);
}
Tensor rounded_division_tangent(const Tensor& self_t, const Tensor& other_p, const Tensor& other_t,
                                const Tensor& result, const MaybeMode& mode) {
  return mode.has_value() ? lamella::zeros_like(result) : (self_t - other_t * result) / other_p;
}

Tensor base_backward(const Tensor& grad, const Tensor& self, const Scalar& exponent) {
  if (exponent.equal(0) || exponent.equal(false)) return zeros_for(grad);
  // Computed in the exponent's own type, so that an integer stays an integer.
  if (exponent.isComplex()) {
    complex<double> e = exponent.toComplexDouble();
    return grad * conj_of(self.pow(Scalar(e - complex<double>(1, 0))) * exponent);
  }
  if (exponent.isFloatingPoint()) {
    double e = exponent.toDouble();
    return grad * conj_of(self.pow(e - 1) * e);
  }
  int64_t e = exponent.toLong();
  return grad * conj_of(self.pow(e - 1) * e);
}
Tensor base_backward(const Tensor& grad, const Tensor& self, const Tensor& exponent) {
  Tensor slope = exponent * self.pow(exponent - 1);
  return keep(grad * conj_of(slope), exponent != 0);
}
Tensor exponent_backward(const Tensor& grad, const Tensor& self, const Tensor& exponent,
                         const Tensor& result) {
  Tensor stays = (self == 0).logical_and(real_of(exponent) >= 0);
  // keep() masks log(0) in the result, but not the NaN of its derivative, so the base is replaced.
  Tensor base = lamella::where(stays, Scalar(1), self);
  // The logarithm of a negative number is complex.
  if (exponent.is_complex() && !base.is_complex()) base = base.to(exponent.scalar_type());
  return keep(grad * conj_of(result * base.log()), stays.logical_not());
}
Tensor exponent_backward(const Tensor& grad, const Scalar& self, const Tensor& exponent,
                         const Tensor& result) {
  if (self.equal(0) || self.equal(false)) {
    Tensor slope = grad * conj_of(result * -std::numeric_limits<double>::infinity());
    return keep(slope, real_of(exponent) < 0);
  }
  if (self.isComplex()) {
    return grad * conj_of(result * lamella::scalar_tensor(self, self.type()).log());
  }
  double base = self.toDouble();
  if (exponent.is_complex() && base < 0) {
    return grad * conj_of(result * Scalar(complex<double>(std::log(-base), kPi)));
  }
  return grad * conj_of(result * std::log(base));
}

Tensor contender_backward(const Tensor& grad, const Tensor& loses, const Tensor& ties) {
  return keep(lamella::where(ties, grad / 2, grad), loses.logical_not());
}
Tensor wins_or_nan(const Tensor& wins, const Tensor& other) {
  return wins.logical_or(lamella::isnan(other));
}
Tensor copysign_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  return keep(grad * (result / self), self != 0);
}
Tensor quotient(const Scalar& self, const Tensor& other) {
  return lamella::div(lamella::full_like(other, self), other, "floor");
}

Tensor xlogy_backward(const Tensor& grad, const Tensor& self, const Tensor& other) {
  return keep(lamella::xlogy(grad, other), ((self == 0).logical_and(other <= 0)).logical_not());
}
Tensor xlogy_backward(const Tensor& grad, const Tensor& self, const Scalar& other) {
  Tensor slope = lamella::xlogy(grad, other);
  return other.toDouble() > 0 ? slope : keep(slope, self != 0);
}
Tensor xlog1py_backward(const Tensor& grad, const Tensor& self, const Tensor& other) {
  return keep(lamella::special_xlog1py(grad, other),
              ((self == 0).logical_and(other <= -1)).logical_not());
}

// ---- Unary ----

Tensor sgn_backward(const Tensor& grad, const Tensor& self, const Tensor& sgn) {
  if (!self.is_complex()) return zeros_for(grad);
  // The component of the gradient perpendicular to self, divided by |self|.
  Tensor along = lamella::real(conj_of(sgn) * grad) * sgn;
  Tensor size = self.abs();
  return keep((grad - along) / size, size != 0);
}
Tensor angle_backward(const Tensor& grad, const Tensor& self) {
  if (!self.is_complex()) return zeros_for(grad);
  Tensor size = self.abs();
  return keep(grad * Scalar(complex<double>(0, 1)) * self / (size * size), size != 0);
}
Tensor angle_tangent(const Tensor& self_t, const Tensor& self_p) {
  if (!self_p.is_complex()) return zeros_for(self_t);
  Tensor size = self_p.abs();
  return keep(lamella::imag(conj_of(self_p) * self_t) / (size * size), size != 0);
}
Tensor acosh_backward(const Tensor& grad, const Tensor& self) {
  // Complex numbers need two roots to get the right branch; real numbers need only one.
  if (self.is_complex()) return grad * conj_of((self + 1).rsqrt() * (self - 1).rsqrt());
  return grad * (self * self - 1).rsqrt();
}
Tensor over_squares(const Tensor& x, const Tensor& self, const Tensor& other) {
  Tensor squares = self * self + other * other;
  return keep(x / squares, squares != 0);
}
Tensor sinc_backward(const Tensor& grad, const Tensor& self) {
  // The denominator also underflows to 0 for tiny numbers, not only at self = 0.
  Tensor x = self * kPi, square = x * self;
  Tensor slope = (x * x.cos() - x.sin()) / square;
  return keep(grad * conj_of(slope), square != 0);
}
Tensor logit_double_backward(const Tensor& grad, const Tensor& self, std::optional<double> eps) {
  Tensor product = self * (1 - self);
  Tensor result = grad * (2 * self - 1) / (product * product);
  if (!eps.has_value()) return result;
  return keep(result, (self >= *eps).logical_and(self <= 1 - *eps));
}
Tensor i1_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  Tensor at_zero = self * self == 0;
  Tensor x = lamella::where(at_zero, Scalar(1), self);
  return grad * lamella::where(at_zero, Scalar(0.5), lamella::i0(self) - result / x);
}
Tensor i1e_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  // Where self * self underflows, i1e(x) is x / 2, so the slope is 0.5.
  Tensor at_zero = self * self == 0;
  Tensor x = lamella::where(at_zero, Scalar(1), self);
  Tensor slope = lamella::special_i0e(self) - result * (self.sgn() + x.reciprocal());
  return grad * lamella::where(at_zero, Scalar(0.5), slope);
}

Tensor polar_size_backward(const Tensor& grad, const Tensor& result) {
  return real_of(conj_of(grad) * result.sgn());
}
Tensor polar_angle_backward(const Tensor& grad, const Tensor& result) {
  return real_of(conj_of(grad) * (result * Scalar(complex<double>(0, 1))));
}
Tensor polar_tangent(const Tensor& size_t, const Tensor& angle_p, const Tensor& angle_t,
                     const Tensor& result) {
  return size_t * lamella::polar(lamella::ones_like(angle_p), angle_p) +
         result * (angle_t * Scalar(complex<double>(0, 1)));
}

// ---- Activations ----

Tensor gelu_double_backward(const Tensor& grads, const Tensor& self, std::string_view approximate) {
  const Tensor& x = self;
  if (approximate == "none") {
    // (Phi + x phi)' = phi (2 - x^2)
    Tensor density = (x * x * -0.5).exp() * 0.39894228040143267794;
    return grads * density * (2 - x * x);
  }
  // f = x (1 + t) / 2 with t = tanh(u): f'' = (1 - t^2) (u' + x u'' / 2 - x t u'^2).
  constexpr double kScale = 0.79788456080286535588, kCube = 0.044715;
  Tensor square = x * x;
  Tensor t = (x * (square * kCube + 1) * kScale).tanh();
  Tensor slope = (square * (3 * kCube) + 1) * kScale;
  Tensor half_curve = x * (3 * kCube * kScale);
  return grads * (1 - t * t) * (slope + x * half_curve - x * t * slope * slope);
}
Tensor silu_double_backward(const Tensor& grads, const Tensor& self) {
  Tensor s = self.sigmoid();
  return grads * conj_of(s * (1 - s) * (self * (1 - 2 * s) + 2));
}
Tensor mish_double_backward(const Tensor& grads, const Tensor& self) {
  Tensor s = self.sigmoid();
  Tensor t = lamella::softplus(self).tanh();
  return grads * s * (1 - t * t) * (self * (1 - s - 2 * s * t) + 2);
}
Tensor softplus_double_backward(const Tensor& grads, const Tensor& self, const Scalar& beta,
                                const Scalar& threshold) {
  Tensor x = self * beta;
  Tensor s = x.sigmoid();
  return keep(grads * s * (1 - s) * beta, x <= threshold);
}
Tensor elu_double_backward(const Tensor& grads, const Scalar& alpha, const Scalar& scale,
                           const Scalar& input_scale, bool is_result,
                           const Tensor& self_or_result) {
  double input = input_scale.toDouble(), negative = alpha.toDouble() * scale.toDouble();
  Tensor below = self_or_result <= 0;
  if (is_result) return keep(grads * input, below);
  return keep(grads * (self_or_result * input).exp() * (negative * input * input), below);
}
Tensor hardswish_double_backward(const Tensor& grads, const Tensor& self) {
  return keep(grads / 3, (self > -3).logical_and(self < 3));
}

// ---- Bounds, interpolation ----

Scalar one_minus(const Scalar& weight) {
  if (weight.isComplex()) return complex<double>(1, 0) - weight.toComplexDouble();
  return 1 - weight.toDouble();
}

Tensor clamp_backward(const Tensor& grad, const Tensor& self, const std::optional<Scalar>& min,
                      const std::optional<Scalar>& max) {
  if (min && max) return keep(grad, (self >= *min).logical_and(self <= *max));
  return keep(grad, min ? self >= *min : self <= *max);
}
Tensor clamp_backward(const Tensor& grad, const Tensor& self, const MaybeTensor& min,
                      const MaybeTensor& max) {
  if (given(min) && given(max)) return keep(grad, (self >= *min).logical_and(self <= *max));
  return keep(grad, given(min) ? self >= *min : self <= *max);
}
Tensor clamp_min_backward(const Tensor& grad, const Tensor& self, const MaybeTensor& min,
                          const MaybeTensor& max) {
  Tensor is_result = self < *min;
  return keep(grad, given(max) ? is_result.logical_and(*min < *max) : is_result);
}
Tensor clamp_max_backward(const Tensor& grad, const Tensor& self, const MaybeTensor& min,
                          const MaybeTensor& max) {
  Tensor is_result = self > *max;
  return keep(grad, given(min) ? is_result.logical_or(*max < *min) : is_result);
}
Tensor clamp_tangent(const Tensor& self_p, const Tensor& self_t, const MaybeTensor& min_p,
                     const MaybeTensor& min_t, const MaybeTensor& max_p, const MaybeTensor& max_t) {
  Tensor result = clamp_backward(self_t, self_p, min_p, max_p);
  if (given(min_p) && given(min_t)) {
    result = result + clamp_min_backward(*min_t, self_p, min_p, max_p);
  }
  if (given(max_p) && given(max_t)) {
    result = result + clamp_max_backward(*max_t, self_p, min_p, max_p);
  }
  return result;
}

}  // namespace lamella
