// The stubs of all pointwise operators. Names are the operators', with a word added where an
// operator has several loops.
#pragma once
#include "lamella/kernels/cpu/loops.h"

// LAMELLA_POINTWISE_STUBS(X): X(name) for each.
// clang-format off
#define LAMELLA_POINTWISE_STUBS(X)                                                              \
  X(add) X(add_alpha) X(sub) X(mul) X(div_true) X(div_trunc) X(div_floor) X(remainder) X(fmod) \
  X(pow) X(pow_square) X(pow_cube) X(pow_inverse_square) X(maximum) X(minimum) X(fmax) X(fmin)  \
  X(hypot) X(copysign) X(logaddexp) X(logaddexp2) X(atan2) X(nextafter) X(xlogy) X(heaviside)   \
  X(eq) X(ne) X(lt) X(le) X(gt) X(ge)                                                           \
  X(logical_and) X(logical_or) X(logical_xor) X(bitwise_and) X(bitwise_or) X(bitwise_xor)       \
  X(bitwise_left_shift) X(bitwise_right_shift) X(gcd) X(lcm)                                    \
  X(neg) X(abs) X(sign) X(sgn) X(reciprocal) X(sqrt) X(rsqrt) X(ceil) X(floor) X(round)         \
  X(round_decimals) X(trunc) X(frac) X(isnan) X(isinf) X(isfinite) X(isposinf) X(isneginf)      \
  X(signbit) X(logical_not) X(bitwise_not) X(nan_to_num) X(angle) X(conj_physical) X(polar)     \
  X(exp) X(exp2) X(expm1) X(log) X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(asin)         \
  X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) X(sigmoid) X(erf) X(erfc)  \
  X(erfinv) X(lgamma) X(digamma) X(silu) X(gelu) X(gelu_tanh) X(softplus) X(elu) X(leaky_relu)  \
  X(threshold) X(mish) X(hardswish) X(hardsigmoid) X(log_sigmoid)                               \
  X(clamp_scalar) X(clamp_min_scalar) X(clamp_max_scalar) X(clamp) X(where) X(lerp)             \
  X(lerp_scalar) X(addcmul) X(addcdiv) X(replace)                                               \
  X(threshold_backward) X(sigmoid_backward) X(tanh_backward) X(silu_backward) X(gelu_backward)  \
  X(gelu_tanh_backward) X(mish_backward) X(softplus_backward) X(elu_backward)                   \
  X(leaky_relu_backward) X(hardtanh_backward) X(hardswish_backward) X(hardsigmoid_backward)     \
  X(log_sigmoid_backward) X(logit_backward) X(shrink_backward)                                  \
  X(logit) X(hardshrink) X(softshrink) X(prelu) X(sinc) X(entr) X(ndtri)      \
  X(log_ndtr) X(erfcx) X(i0) X(i0e) X(i1) X(i1e) X(polygamma) X(zeta) X(xlog1py)
// clang-format on

namespace lamella::native {
#define LAMELLA_DECLARE_POINTWISE(name) LAMELLA_DECLARE_DISPATCH(pointwise_fn, name##_stub);
LAMELLA_POINTWISE_STUBS(LAMELLA_DECLARE_POINTWISE)
#undef LAMELLA_DECLARE_POINTWISE

// Loops that gain nothing from wider vectors; plain_loops.cpp and complex_loops.cpp have them.
// clang-format off
#define LAMELLA_OTHER_LOOPS(X)                                                                \
  X(exp) X(exp2) X(expm1) X(log) X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(asin)       \
  X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) X(sigmoid) X(silu)       \
  X(sqrt) X(rsqrt) X(pow) X(div_trunc) X(silu_backward) X(sinc)  \
  X(logaddexp)
// clang-format on
#define LAMELLA_DECLARE_OTHERS(name) extern const LoopFn name##_others[kLoopTypes];
LAMELLA_OTHER_LOOPS(LAMELLA_DECLARE_OTHERS)
#undef LAMELLA_DECLARE_OTHERS
}  // namespace lamella::native
