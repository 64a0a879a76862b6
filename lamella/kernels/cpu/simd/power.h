// Powers and remainders in vectors.
#pragma once
#include "lamella/kernels/cpu/simd/logarithm.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {

// What pow(x, y) is where the formula exp(y log |x|), given as `result`, does not say it (ISO C,
// annex F.10.4.4): signs, and 1 for x = 1 or y = 0 whatever the other is.
template <class V>
inline V v_pow_special(V x, V y, V result) {
  using T = ElementOf<V>;
  if (LAMELLA_LIKELY(!v_any(~((x > 0) & (v_abs(y) < kInf<T>))))) return result;
  V size = v_abs(x);
  // Whole numbers by twice themselves: odd ones have a half that is none.
  auto whole = v_rint(y) == y;
  V half = y * T(0.5);
  auto odd = whole && v_rint(half) != half && v_abs(y) < kInf<T>;
  result = x < 0 && !whole && size < kInf<T> ? V{} + kQuietNan<T> : result;
  result = odd ? v_copysign(result, x) : result;
  // A base of size 1 has no logarithm to multiply an infinite exponent by.
  result = size == 1 && v_abs(y) == kInf<T> ? V{} + 1 : result;
  return x == 1 || y == 0 ? V{} + 1 : result;
}

// float32 in double precision, where log needs no more than a part in 2^34.
inline VecD v_pow_positive_float(VecD x, VecD y) {
  Parts<VecD> parts = v_frexp_of_log(x);
  VecD f = parts.mantissa - 1, s = f / (2 + f), z = s * s;
  VecD log2 = v_fma(s, v_polynomial(z, Coefficients<double>::log2_float), parts.exponent);
  VecD power = v_at_most(v_at_least(y * log2, -400.0), 400.0);
  Rounded<VecD> n = v_round(power);
  VecD r = power - n.value;
  return v_polynomial(r, Coefficients<double>::exp2_float) * v_power_of_two<VecD>(n.whole);
}
inline VecF v_pow(VecF x, VecF y) {
  VecF result = v_by_double(v_abs(x), y, [](VecD a, VecD b) { return v_pow_positive_float(a, b); });
  return v_pow_special(x, y, result);
}

// float64: log(x) in twice the precision. With s = f / (2 + f) as a sum of two numbers,
// log(1 + f) = 2 s + s^3 P(s^2), of which 2/3 s^3 is in two parts as well.
inline VecD v_pow(VecD x, VecD y) {
  using V = VecD;
  Parts<V> parts = v_frexp_of_log(v_abs(x));
  V f = parts.mantissa - 1, n = parts.exponent;
  Twice<V> down = v_fast_sum(V{} + 2, f);
  V inverse = 1 / down.high, s = f * inverse;
  Twice<V> back = v_product(s, down.high);
  V s_low = ((f - back.high) - back.low - s * down.low) * inverse;
  Twice<V> z = v_product(s, s);
  z.low = v_fma(s * 2, s_low, z.low);
  // 2/3 + z Q(z), times z, times s.
  constexpr double kThird = 0x1.5555555555555p-1, kThirdRest = 0x1.5555555555555p-55;
  V q = z.high * v_polynomial(z.high, Coefficients<double>::log_odd_rest);
  Twice<V> c = v_fast_sum(V{} + kThird, q);
  c.low += kThirdRest;
  Twice<V> zc = v_product(z.high, c.high);
  zc.low += v_fma(z.low, c.high, z.high * c.low);
  Twice<V> szc = v_product(s, zc.high);
  szc.low += v_fma(s_low, zc.high, s * zc.low);
  // n log(2) + 2 s + s z c.
  constexpr double kLog2Low = 0x1.3de6af278ece6p-42, kLog2Least = 0x1.f97b57a079a19p-103;
  V n_high = n * kLog2Upper<double>;
  Twice<V> n_low = v_product(n, V{} + kLog2Low);
  n_low.low = v_fma(n, V{} + kLog2Least, n_low.low);
  Twice<V> log = v_sum(n_high, 2 * s);
  Twice<V> more = v_sum(n_low.high, szc.high);
  Twice<V> sum = v_sum(log.high, more.high);
  sum = v_fast_sum(sum.high, sum.low + (log.low + more.low + (2 * s_low + szc.low + n_low.low)));
  // Infinite and NaN logarithms have no second part.
  sum.low = v_abs(sum.high) < 1e6 ? sum.low : V{};
  sum.high = v_abs(n) < 1e6 ? sum.high : n;
  // Times y, which may be far too large: exp cuts it.
  V huge = v_at_most(v_at_least(y, -1e300), 1e300);
  Twice<V> power = v_product(sum.high, huge);
  auto far = !(v_abs(power.high) < 2000);
  V low = far ? V{} : v_fma(sum.low, huge, power.low);
  V result = v_exp(far ? sum.high * y : power.high, low);
  return v_pow_special(x, y, result);
}

// sqrt(x^2 + y^2): float32 in double precision, where squares do not overflow.
inline VecF v_hypot(VecF x, VecF y) {
  VecF result = v_by_double(x, y, [](VecD a, VecD b) { return v_sqrt(a * a + b * b); });
  auto infinite = v_abs(x) == kInf<float> || v_abs(y) == kInf<float>;
  return infinite ? VecF{} + kInf<float> : result;
}
// float64 by a power of two that brings the larger one near 1, with the error of the square root
// taken back (the residue of a correctly rounded root is exact with the squares in two parts).
inline VecD v_hypot(VecD x, VecD y) {
  using V = VecD;
  V a = v_abs(x), b = v_abs(y);
  V large = a > b ? a : b, small = a > b ? b : a;
  V up = large > 0x1p500 ? V{} + 0x1p-600 : large < 0x1p-450 ? V{} + 0x1p600 : V{} + 1;
  V down = large > 0x1p500 ? V{} + 0x1p600 : large < 0x1p-450 ? V{} + 0x1p-600 : V{} + 1;
  large *= up;
  small *= up;
  Twice<V> square = v_product(large, large);
  V other = small * small;
  Twice<V> sum = v_fast_sum(square.high, other);
  V root = v_sqrt(sum.high);
  V result = root + (square.low + sum.low) / (2 * root);
  result = (large == 0 ? V{} : result) * down;
  result = v_is_nan(a) || v_is_nan(b) ? a + b : result;
  return a == kInf<double> || b == kInf<double> ? V{} + kInf<double> : result;
}

// ---- Remainders ----

// a - q b for the whole number q nearest to a / b, or b more where that is negative. It is exact:
// no more bits are left than a number has.
template <class V>
inline V v_fmod_step(V a, V b) {
  V q = v_round(a / b).value, r;
  if constexpr (kHasFma) {
    r = v_fma(-q, b, a);
  } else {
    Twice<V> p = v_product(q, b);
    r = (a - p.high) - p.low;
  }
  return r < 0 ? r + b : r;
}
// The remainder of a >= 0 by b > 2^-950, both finite. While a quotient has too many bits, b times a
// power of two is taken away.
inline VecD v_fmod_positive(VecD a, VecD b) {
  auto far = a > b * 0x1p50;
  while (LAMELLA_UNLIKELY(v_any(far))) {
    VecL gap = v_shift_right<VecD>(v_bits(a), 52) - v_shift_right<VecD>(v_bits(b), 52) - 50;
    VecD larger = v_from_bits<VecD>(v_bits(b) + (gap << 52));
    a = far ? v_fmod_step(a, larger) : a;
    far = a > b * 0x1p50;
  }
  return v_fmod_step(a, b);
}
inline VecD v_fmod(VecD x, VecD y) {
  VecD a = v_abs(x), b = v_abs(y);
  auto usual = (a < kInf<double>)&(b > 0) & (b < kInf<double>);
  auto tiny = b < 0x1p-900;
  VecD divisor = usual ? (tiny ? b * 0x1p100 : b) : VecD{} + 1;
  // Without fused multiplication, the product with the quotient must not overflow.
  VecD scale = VecD{} + 1;
  if constexpr (!kHasFma) scale = a > 0x1p1000 ? VecD{} + 0.25 : scale;
  VecD r = v_fmod_positive(usual ? a * scale : VecD{}, divisor * scale) / scale;
  if (LAMELLA_UNLIKELY(v_any(tiny))) {  // what is left by 2^100 b, and then, scaled up, by b
    VecD rest = v_fmod_positive(tiny & usual ? r * 0x1p100 : VecD{}, divisor) * 0x1p-100;
    r = tiny ? rest : r;
  }
  // NaN but for the remainder by infinity, which is x.
  VecD other = (a < kInf<double>)&(b == kInf<double>) ? a : VecD{} + kQuietNan<double>;
  r = usual ? r : other;
  return v_from_bits<VecD>(v_bits(r) | v_sign(x));
}
inline VecF v_fmod(VecF x, VecF y) {
  if constexpr (kHasFma) {
    VecF a = v_abs(x), b = v_abs(y);
    auto usual = (a < b * 0x1p20f) & (b > 0x1p-100f) & (b < kInf<float>);
    if (LAMELLA_LIKELY(!v_any(~usual))) return v_flip(v_fmod_step(a, b), v_sign(x));
  }
  return v_by_double(x, y, [](VecD a, VecD b) { return v_fmod(a, b); });
}
// With the sign of the divisor.
template <class V>
inline V v_remainder(V x, V y) {
  V r = v_fmod(x, y);
  return r != 0 && (v_sign(r) != v_sign(y)) ? r + y : r;
}
template <class V>
inline V v_floor_divide(V x, V y) {
  using T = ElementOf<V>;
  V r = v_fmod(x, y);
  V q = (x - r) / y;
  q = r != 0 && (v_sign(r) != v_sign(y)) ? q - 1 : q;
  // q is near a whole number; that one is taken.
  V floor = v_floor(q);
  floor = q - floor > T(0.5) ? floor + 1 : floor;
  V zero = v_flip(V{}, v_sign(x) ^ v_sign(y));
  return y == 0 ? x / y : q == 0 ? zero : floor;
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
