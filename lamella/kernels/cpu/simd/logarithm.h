// Logarithms, and inverse hyperbolic functions made of them, in vectors.
#pragma once
#include "lamella/kernels/cpu/simd/exponential.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {

// log(1 + f) - f, for f in [-1/4, 1/2].
inline VecF v_log_rest(VecF f) {
  return f * f * v_fma(f, v_polynomial(f, Coefficients<float>::log), -0.5f);
}
// Uses the odd series in s = f / (2 + f), which needs half as many terms: with h = f^2 / 2 and R
// the terms of that series after 2 s, log(1 + f) = f - (h - s (h + R)).
inline VecD v_log_rest(VecD f) {
  VecD s = f / (2 + f), z = s * s, h = 0.5 * f * f;
  return v_fma(s, v_fma(z, v_polynomial(z, Coefficients<double>::log_odd), h), -h);
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
inline VecF v_log2(VecF x) {
  Parts<VecF> parts = v_frexp_of_log(x);
  VecF f = parts.mantissa - 1;
  return v_fma(f, v_polynomial(f, Coefficients<float>::log2), parts.exponent);
}
inline VecD v_log2(VecD x) {
  constexpr double kFactor = 0x1.71547652b82fep+0, kRest = 0x1.777d0ffda0d24p-56;
  Parts<VecD> parts = v_frexp_of_log(x);
  VecD f = parts.mantissa - 1;
  VecD small = v_fma(v_log_rest(f), VecD{} + kFactor, f * kRest);
  return parts.exponent + v_fma(f, VecD{} + kFactor, small);
}
inline VecF v_log10(VecF x) {
  Parts<VecF> parts = v_frexp_of_log(x);
  VecF f = parts.mantissa - 1, n = parts.exponent;
  VecF small = v_fma(f, v_polynomial(f, Coefficients<float>::log10), n * 0x1.3509f79fef312p-18f);
  return v_fma(n, VecF{} + 0x1.344p-2f, small);
}
inline VecD v_log10(VecD x) {
  constexpr double kFactor = 0x1.bcb7b1526e50ep-2, kRest = 0x1.95355baaafad3p-57;
  Parts<VecD> parts = v_frexp_of_log(x);
  VecD f = parts.mantissa - 1, n = parts.exponent;
  VecD rest = v_fma(f, VecD{} + kRest, n * 0x1.3fde623e2566bp-43);
  VecD small = v_fma(v_log_rest(f), VecD{} + kFactor, rest);
  return v_fma(n, VecD{} + 0x1.34413509f7p-2, v_fma(f, VecD{} + kFactor, small));
}
// 2^-n, where that is normal.
template <class V>
inline V v_negative_power(V n) {
#if defined(CPU_CAPABILITY_AVX512)
  return v_ldexp(V{} + 1, Rounded<V>{-n, IntOf<V>{}});
#else
  return v_power_of_two<V>(-v_round(n).whole);
#endif
}
// With n the exponent of 1 + x, f = 2^-n x + (2^-n - 1) is rounded once, and not at all near 0.
// Where `shifted` is not set, log(x) instead.
template <class V>
inline V v_log1p_or_log(V x, IntOf<V> shifted) {
  V u = shifted ? 1 + x : x;
  Parts<V> parts = v_frexp_of_log(u);
  V scale = v_negative_power(parts.exponent);
  V f = v_fma(x, scale, scale - 1);
  // If u is special (0, infinite, NaN, negative) or huge, the parts of u give the exact result.
  auto by_parts = ~(v_abs(parts.exponent) < 100) | ~shifted;
  return v_log_of(by_parts ? parts.mantissa - 1 : f, parts.exponent);
}
template <class V>
inline V v_log1p(V x) {
  return v_copysign(v_log1p_or_log(x, IntOf<V>{} - 1), x);  // -0 stays
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
