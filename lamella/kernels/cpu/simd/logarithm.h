// Logarithms, and inverse hyperbolic functions made of them, in vectors.
#pragma once
#include "lamella/kernels/cpu/simd/exponential.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {

// log(1 + f) - f, for f in [-1/4, 1/2]. float64 by the odd series in s = f / (2 + f), which needs
// half as many terms: with h = f^2 / 2 and R what that series has after 2 s,
// log(1 + f) = f - (h - s (h + R)).
template <class V>
inline V v_log_rest(V f) {
  using T = ElementOf<V>;
  if constexpr (sizeof(T) == 4) {
    return f * f * v_fma(f, v_polynomial(f, Coefficients<T>::log), T(-0.5));
  } else {
    V s = f / (2 + f), z = s * s, h = T(0.5) * f * f;
    return v_fma(s, v_fma(z, v_polynomial(z, Coefficients<T>::log_odd), h), -h);
  }
}
// n log(2) + log(1 + f).
template <class V>
inline V v_log_of(V f, V n) {
  using T = ElementOf<V>;
  V rest = v_fma(n, V{} + kLog2Lower<T>, v_log_rest(f));
  return v_fma(n, V{} + kLog2Upper<T>, f + rest);
}
template <class V>
inline V v_log(V x) {
  Parts<V> parts = v_frexp_of_log(x);
  return v_log_of(parts.mantissa - 1, parts.exponent);
}
// float32 has polynomials of its own for other bases; float64 multiplies by a factor in two parts.
template <class V>
inline V v_log2(V x) {
  using T = ElementOf<V>;
  Parts<V> parts = v_frexp_of_log(x);
  V f = parts.mantissa - 1;
  if constexpr (sizeof(T) == 4) {
    return v_fma(f, v_polynomial(f, Coefficients<T>::log2), parts.exponent);
  } else {
    constexpr T kFactor = 0x1.71547652b82fep+0, kRest = 0x1.777d0ffda0d24p-56;
    V small = v_fma(v_log_rest(f), kFactor, f * kRest);
    return parts.exponent + v_fma(f, kFactor, small);
  }
}
template <class V>
inline V v_log10(V x) {
  using T = ElementOf<V>;
  Parts<V> parts = v_frexp_of_log(x);
  V f = parts.mantissa - 1, n = parts.exponent;
  if constexpr (sizeof(T) == 4) {
    V small = v_fma(f, v_polynomial(f, Coefficients<T>::log10), n * 0x1.3509f79fef312p-18f);
    return v_fma(n, 0x1.344p-2f, small);
  } else {
    constexpr T kFactor = 0x1.bcb7b1526e50ep-2, kRest = 0x1.95355baaafad3p-57;
    V rest = v_fma(f, kRest, n * 0x1.3fde623e2566bp-43);
    V small = v_fma(v_log_rest(f), kFactor, rest);
    return v_fma(n, 0x1.34413509f7p-2, v_fma(f, kFactor, small));
  }
}
// With n the exponent of 1 + x, f = 2^-n x + (2^-n - 1) is rounded once, and not at all near 0.
// Where `shifted` is not set, log(x) instead.
template <class V>
inline V v_log1p_or_log(V x, MaskOf<V> shifted) {
  V u = v_select(shifted, 1 + x, x);
  Parts<V> parts = v_frexp_of_log(u);
  V scale = v_negative_power(parts.exponent);
  V f = v_fma(x, scale, scale - 1);
  // Where u is special (0, infinite, NaN, negative) or huge, the parts of u say all.
  auto by_parts = v_not<V>(v_abs(parts.exponent) < 100) | v_not<V>(shifted);
  return v_log_of(v_select(by_parts, parts.mantissa - 1, f), parts.exponent);
}
template <class V>
inline V v_log1p(V x) {
  return v_copysign(v_log1p_or_log(x, V{} == V{}), x);  // -0 stays
}
// log(x / (1 - x)): near 1/2 as log1p((2 x - 1) / (1 - x)), elsewhere as the log of the quotient.
template <class V>
inline V v_logit(V x) {
  using T = ElementOf<V>;
  V rest = 1 - x;
  auto near = v_abs(x - T(0.5)) < T(0.15);
  V quotient = v_select(near, 2 * x - 1, x) / rest;
  return v_log1p_or_log(quotient, near);
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
