// Activations of neural networks and their gradients in vectors. A gradient is that of the output,
// g, times the slope at the input x.
#pragma once
#include "lamella/kernels/cpu/simd/error_function.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {

// gelu by tanh (D. Hendrycks, K. Gimpel, Gaussian Error Linear Units, 2016, section 2), as
// x sigmoid(2 u), which keeps its accuracy for negative x.
template <class V>
inline V v_gelu_tanh(V a) {
  using T = ElementOf<V>;
  constexpr bool kSingle = sizeof(T) == 4;
  constexpr T kScaleUpper = T(1.595769121605730711759542),
              kCubeUpper = T(0.071354816272600248779574);
  constexpr T kScaleRest = kSingle ? T(-0x1.857936p-25) : T(-0x1.ccp-54);
  constexpr T kCubeRest = kSingle ? T(0x1.49b16ap-29) : T(-0x1.6cp-61);
  // Beyond 40 the result is a, below -40 it is 0, so the bounds change nothing.
  V x = v_at_most(v_at_least(a, T(-40)), T(40));
  // An error of u is multiplied by u in the result, so u is computed in two parts.
  Twice<V> square = v_product(x, x);
  Twice<V> cube = v_product(square.high, V{} + kCubeUpper);
  cube.low = cube.low + v_fma(square.low, V{} + kCubeUpper, square.high * kCubeRest);
  Twice<V> sum = v_sum(V{} + kScaleUpper, cube.high);
  sum.low = sum.low + (cube.low + kScaleRest);
  Twice<V> u = v_product(x, sum.high);
  u.low = v_fma(x, sum.low, u.low);
  return v_at_least(a, T(-40)) * v_sigmoid(u.high, u.low);
}
// x tanh(log(1 + e)) = x n / (n + 2), with e = exp(x) and n = e (e + 2).
template <class V>
inline V v_mish(V a) {
  using T = ElementOf<V>;
  V e = v_exp(v_at_most(a, T(20))), n = v_fma(e, e, 2 * e);
  return v_select(a > T(20), a, v_at_least(a, T(-1e4)) * (n / (n + 2)));
}
template <class V>
inline V v_mish_backward(V g, V x) {
  using T = ElementOf<V>;
  V e = v_exp(v_at_most(x, T(20)));
  V n = e * (e + 2);
  V t = v_select(x > T(20), V{} + 1, n / (n + 2));
  return g * (t + x * (e / (e + 1)) * (1 - t * t));
}
// Phi(x) + x phi(x), with the normal distribution's function Phi and density phi. x is limited to
// [-40, 40], where both have reached their limits, because inf * 0 is NaN. float32 takes Phi from a
// rational approximation that is within 1.5e-7 (M. Abramowitz, I. Stegun, Handbook of Mathematical
// Functions, 7.1.26) and shares the exponential with the density.
template <class V>
inline V v_gelu_backward(V g, V x) {
  using T = ElementOf<V>;
  x = v_at_most(v_at_least(x, T(-40)), T(40));
  V exponential = v_exp(T(-0.5) * x * x), distribution;
  if constexpr (sizeof(T) == 4) {
    V t = 1 / (1 + T(0.3275911f * 0.70710678118654752440f) * v_abs(x));
    V p =
        t *
        (T(0.254829592) +
         t * (T(-0.284496736) + t * (T(1.421413741) + t * (T(-1.453152027) + t * T(1.061405429)))));
    V tail = T(0.5) * p * exponential;
    distribution = v_select(x < 0, tail, 1 - tail);
  } else {
    distribution = T(0.5) * v_erfc(x * T(-0.70710678118654752440));
  }
  return g * (distribution + x * T(0.39894228040143267794) * exponential);
}
template <class V>
inline V v_gelu_tanh_backward(V g, V x) {
  using T = ElementOf<V>;
  constexpr T kScale = T(0.79788456080286535588), kCube = T(0.044715);
  x = v_at_most(v_at_least(x, T(-40)), T(40));
  V square = x * x;
  V t = v_tanh(kScale * x * (1 + kCube * square));
  return g * (T(0.5) * (1 + t + x * (1 - t * t) * kScale * (1 + 3 * kCube * square)));
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
