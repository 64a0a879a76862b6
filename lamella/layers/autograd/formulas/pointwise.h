// Helpers for the derivatives of pointwise operators. Internal.
//
// Gradients and tangents broadcast like the operands; the engine sums a gradient to its input's
// shape. Helpers named *_backward give the gradient of the argument that they are named for.
#pragma once
#include "lamella/layers/autograd/formulas/common.h"

namespace lamella {

using MaybeTensor = std::optional<Tensor>;
using MaybeMode = std::optional<std::string_view>;

// ---- Arithmetic ----

// The gradient of sub's other: -grad * alpha.
Tensor subtracted(const Tensor& grad, const Scalar& alpha);
// The gradient of the divisor; with a rounding mode the quotient is piecewise constant.
Tensor divisor_backward(const Tensor& grad, const Tensor& self, const Tensor& other);
Tensor rounded_dividend_backward(const Tensor& grad, const Tensor& other, const MaybeMode& mode);
Tensor rounded_divisor_backward(const Tensor& grad, const Tensor& self, const Tensor& other,
                                const MaybeMode& mode);
Tensor rounded_division_tangent(const Tensor& self_t, const Tensor& other_p, const Tensor& other_t,
                                const Tensor& result, const MaybeMode& mode);
// A power is constant where the exponent is 0, and where a base of 0 has an exponent that keeps
// the result at 0.
Tensor base_backward(const Tensor& grad, const Tensor& self, const Scalar& exponent);
Tensor base_backward(const Tensor& grad, const Tensor& self, const Tensor& exponent);
Tensor exponent_backward(const Tensor& grad, const Tensor& self, const Tensor& exponent,
                         const Tensor& result);
Tensor exponent_backward(const Tensor& grad, const Scalar& self, const Tensor& exponent,
                         const Tensor& result);
// The gradient of one operand of maximum or minimum: 0 where it loses, half where both are equal.
Tensor contender_backward(const Tensor& grad, const Tensor& loses, const Tensor& ties);
// Where one operand of fmax or fmin is the result, with `wins` a comparison: a NaN always loses.
Tensor wins_or_nan(const Tensor& wins, const Tensor& other);
Tensor copysign_backward(const Tensor& grad, const Tensor& self, const Tensor& result);
// The rounded quotient that remainder's derivative by its divisor is the negative of.
Tensor quotient(const Scalar& self, const Tensor& other);
Tensor xlogy_backward(const Tensor& grad, const Tensor& self, const Tensor& other);
Tensor xlogy_backward(const Tensor& grad, const Tensor& self, const Scalar& other);
Tensor xlog1py_backward(const Tensor& grad, const Tensor& self, const Tensor& other);

// ---- Unary ----

// Also the forward-mode derivative: a projection, which is its own adjoint.
Tensor sgn_backward(const Tensor& grad, const Tensor& self, const Tensor& sgn);
Tensor angle_backward(const Tensor& grad, const Tensor& self);
Tensor angle_tangent(const Tensor& self_t, const Tensor& self_p);
Tensor acosh_backward(const Tensor& grad, const Tensor& self);
// x / (self^2 + other^2), and 0 where that is a division by 0.
Tensor over_squares(const Tensor& x, const Tensor& self, const Tensor& other);
Tensor sinc_backward(const Tensor& grad, const Tensor& self);
Tensor logit_double_backward(const Tensor& grad, const Tensor& self, std::optional<double> eps);
Tensor i1_backward(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor i1e_backward(const Tensor& grad, const Tensor& self, const Tensor& result);
// The gradients of polar.
Tensor polar_size_backward(const Tensor& grad, const Tensor& result);
Tensor polar_angle_backward(const Tensor& grad, const Tensor& result);
Tensor polar_tangent(const Tensor& size_t, const Tensor& angle_p, const Tensor& angle_t,
                     const Tensor& result);

// ---- Activations: derivatives of their gradients, by the input ----

// `grads` is the product of the two gradients that flow in.
Tensor gelu_double_backward(const Tensor& grads, const Tensor& self, std::string_view approximate);
Tensor silu_double_backward(const Tensor& grads, const Tensor& self);
Tensor mish_double_backward(const Tensor& grads, const Tensor& self);
Tensor softplus_double_backward(const Tensor& grads, const Tensor& self, const Scalar& beta,
                                const Scalar& threshold);
Tensor elu_double_backward(const Tensor& grads, const Scalar& alpha, const Scalar& scale,
                           const Scalar& input_scale, bool is_result, const Tensor& self_or_result);
Tensor hardswish_double_backward(const Tensor& grads, const Tensor& self);

// ---- Bounds, interpolation ----

// 1 - weight.
Scalar one_minus(const Scalar& weight);

Tensor clamp_backward(const Tensor& grad, const Tensor& self, const std::optional<Scalar>& min,
                      const std::optional<Scalar>& max);
Tensor clamp_backward(const Tensor& grad, const Tensor& self, const MaybeTensor& min,
                      const MaybeTensor& max);
// The gradient of a bound that is given: that of the result where the bound is the result.
Tensor clamp_min_backward(const Tensor& grad, const Tensor& self, const MaybeTensor& min,
                          const MaybeTensor& max);
Tensor clamp_max_backward(const Tensor& grad, const Tensor& self, const MaybeTensor& min,
                          const MaybeTensor& max);
// Tangents of bounds may be undefined.
Tensor clamp_tangent(const Tensor& self_p, const Tensor& self_t, const MaybeTensor& min_p,
                     const MaybeTensor& min_t, const MaybeTensor& max_p, const MaybeTensor& max_t);

}  // namespace lamella
