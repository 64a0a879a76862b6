// Inverse trigonometric and inverse hyperbolic functions in vectors.
#pragma once
#include "lamella/kernels/cpu/simd/logarithm.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {

// pi / 2 as the sum of kHalfPi and kHalfPiRest.
template <class T>
inline constexpr T kHalfPi = T(1.57079632679489661923);
template <class T>
inline constexpr T kHalfPiRest =
    sizeof(T) == 4 ? T(-0x1.777a5cf72cecep-25) : T(0x1.1a62633145c07p-54);

// atan(a / b) for a, b >= 0, not both of them 0 or infinite: a / b comes within tan(pi / 8) by
// atan(q) = pi / 4 + atan((q - 1) / (q + 1)) = pi / 2 - atan(1 / q), with a single division. The
// result is `of` plus `times` that angle, each +-.
template <class V>
struct Angle {
  V high, low;
};
template <class V>
inline Angle<V> v_angle(V a, V b) {
  using T = ElementOf<V>;
  auto steep = a > b * T(2.414213562), middle = a > b * T(0.4142135624);
  V up = v_select(steep, -b, v_select(middle, a - b, a));
  V down = v_select(steep, a, v_select(middle, a + b, b));
  V base = v_select(steep, V{} + kHalfPi<T>, v_select(middle, V{} + kHalfPi<T> / 2, V{}));
  V rest = v_select(steep, V{} + kHalfPiRest<T>, v_select(middle, V{} + kHalfPiRest<T> / 2, V{}));
  V t = up / down, z = t * t;
  V small = v_fma(t * z, v_polynomial(z, Coefficients<T>::atan), rest);
  V high = base + t;
  return {high, (t - (high - base)) + small};
}
template <class V>
inline V v_atan(V x) {
  Angle<V> angle = v_angle(v_abs(x), V{} + 1);
  return v_copysign(angle.high + angle.low, x);
}
template <class V>
inline V v_atan2(V y, V x) {
  using T = ElementOf<V>;
  V a = v_abs(y), b = v_abs(x);
  // Operands are bounded so that sums do not overflow and inf / inf and 0 / 0 become 1 and 0.
  constexpr T kHuge = sizeof(T) == 4 ? T(0x1p126) : T(0x1p1022);
  auto huge = (a > kHuge) | (b > kHuge);
  auto infinite = (a == kInf<T>)&(b == kInf<T>);
  a = v_select(infinite, V{} + 1, v_select(huge, a * T(0.25), a));
  b = v_select(infinite | ((a == 0) & (b == 0)), V{} + 1, v_select(huge, b * T(0.25), b));
  Angle<V> angle = v_angle(a, b);
  // pi - angle where x is negative, -0 included.
  V high = 2 * kHalfPi<T> - angle.high;
  V low = ((2 * kHalfPi<T> - high) - angle.high) + (2 * kHalfPiRest<T> - angle.low);
  V result = v_select(v_sign(x) != 0, high + low, angle.high + angle.low);
  return v_copysign(result, y);
}

// asin(|x|) up to 0.55, from where on twice the rest to pi / 2 is below 1; then half of that rest.
template <class V>
inline V v_asin_of(V x, MaskOf<V>* large) {
  using T = ElementOf<V>;
  V size = v_abs(x);
  *large = size > T(0.55);
  V z = v_select(*large, T(0.5) - size * T(0.5), x * x);
  V t = v_select(*large, v_sqrt(z), size);
  return v_fma(t * z, v_polynomial(z, Coefficients<T>::asin), t);
}
template <class V>
inline V v_asin(V x) {
  using T = ElementOf<V>;
  MaskOf<V> large;
  V angle = v_asin_of(x, &large);
  return v_copysign(v_select(large, kHalfPi<T> - (2 * angle - kHalfPiRest<T>), angle), x);
}
template <class V>
inline V v_acos(V x) {
  using T = ElementOf<V>;
  MaskOf<V> large;
  V angle = v_asin_of(x, &large);
  V near = v_select(x > 0, 2 * angle, 2 * kHalfPi<T> - (2 * angle - 2 * kHalfPiRest<T>));
  return v_select(large, near, kHalfPi<T> - (v_flip(angle, v_sign(x)) - kHalfPiRest<T>));
}

// Squares of larger numbers would overflow; there asinh(x) and acosh(x) are log(2 x).
template <class T>
inline constexpr T kHugeRoot = sizeof(T) == 4 ? T(1e9) : T(1e18);
template <class V>
inline V v_log1p_or_twice(V t, V x) {
  using T = ElementOf<V>;
  auto huge = x > kHugeRoot<T>;
  return v_log1p(v_select(huge, x, t)) + v_select(huge, V{} + T(0.69314718055994530942), V{});
}
template <class V>
inline V v_asinh(V x) {
  using T = ElementOf<V>;
  V size = v_abs(x), z = size * size;
  V small = v_fma(size * z, v_polynomial(z, Coefficients<T>::asinh), size);
  V large = v_log1p_or_twice(size + z / (1 + v_sqrt(1 + z)), size);
  return v_copysign(v_select(size <= T(0.5), small, large), x);
}
template <class V>
inline V v_acosh(V x) {
  using T = ElementOf<V>;
  V u = v_select(x < 1, V{} + kQuietNan<T>, x - 1);
  return v_log1p_or_twice(u + v_sqrt(v_fma(u, u, 2 * u)), x);
}
template <class V>
inline V v_atanh(V x) {
  using T = ElementOf<V>;
  V size = v_abs(x);
  return v_copysign(T(0.5) * v_log1p(2 * size / (1 - size)), x);
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
