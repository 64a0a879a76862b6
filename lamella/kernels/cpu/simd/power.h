// Powers and remainders in vectors.
#pragma once
#include "lamella/kernels/cpu/simd/logarithm.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {

// log2(x) for x >= 0 as a sum of two numbers, with an error of less than 2^-10 units in the last
// place of the first. Tables reduce x to 1 + r, and the leading terms of log2(1 + r) are computed
// in two parts: see PowerLog (P. Tang, Table-driven implementation of the logarithm function in
// IEEE floating-point arithmetic, 1990). The second number is up to 2^-10 times the first, and NaN
// where x is 0 or infinite.
template <class V>
inline Twice<V> v_log2_twice(V x) {
  using T = ElementOf<V>;
  using Log = PowerLog<T>;
  constexpr int kEntries = sizeof(Log::inverse) / sizeof(T);
  constexpr int kIndexBits = kEntries == 32 ? 5 : 4;
  static_assert(kEntries == 1 << kIndexBits);
  Parts<V> parts = v_frexp_of_log(x);
  IntOf<V> at = (v_bits(parts.mantissa) >> (VecTraits<V>::kMantissa - kIndexBits)) & (kEntries - 1);
  Twice<V> product = v_product(parts.mantissa, v_lookup<V>(Log::inverse, at));
  V r = product.high - 1;
  // r (head[0] + head[1] r + rest[2] r^2 + ...); `slope` is its derivative.
  const V head0 = V{} + Log::head[0], head1 = V{} + Log::head[1];
  V sum = v_fma(r, head1, head0);
  V rest = v_fma(r, head1, head0 - sum) + v_polynomial(r, Log::rest);
  if constexpr (!VecTraits<V>::kHasFma) rest += v_product_error(r, head1, r * head1);
  Twice<V> near = v_product(r, sum);
  V slope = v_fma(r * r, 3 * Log::rest[2], v_fma(r, head1, sum));
  near.low = v_fma(r, rest, v_fma(product.low, slope, near.low));
  Twice<V> log = v_fast_sum(parts.exponent + v_lookup<V>(Log::high, at), near.high);
  return {log.high, log.low + (near.low + v_lookup<V>(Log::low, at))};
}

// |x|^y as 2^(y log2 |x|); special cases follow ISO C (annex F.10.4.4): signs, and 1 for x = 1 or
// y = 0 whatever the other is.
template <class V>
inline V v_pow(V x, V y) {
  using T = ElementOf<V>;
  // Exponents beyond this bound give only 0 and infinity.
  constexpr T kFar = sizeof(T) == 4 ? 160 : 1100;
  V size = v_abs(x);
  Twice<V> log = v_log2_twice(size);
  const V whole_log = log.high;
  // float64's larger exponents need the sum to be renormalised first.
  if constexpr (sizeof(T) == 8) log = v_fast_sum(log.high, log.low);
  Twice<V> power = v_product(log.high, y);
  power.low = v_fma(y, log.low, power.low);
  auto near = v_abs(power.high) < kFar;
  bool usual = !v_any<V>(v_not<V>((x > 0) & near));
  if (LAMELLA_UNLIKELY(!usual)) {
    power.low = v_select(near, power.low, V{});
    V cut = v_at_most(v_at_least(whole_log * y, -kFar), kFar);
    power.high = v_select(near, power.high, cut);
  }
  Rounded<V> n = v_round(power.high + power.low);
  V r = power.high - n.value + power.low;
  V result = v_ldexp(v_fma(r, v_polynomial(r, Coefficients<T>::exp2), T(1)), n);
  if (LAMELLA_LIKELY(usual)) return result;
  // A whole number is odd if its half is not a whole number.
  auto whole = v_rint(y) == y;
  V half = y * T(0.5);
  auto odd = whole & (v_rint(half) != half) & (v_abs(y) < kInf<T>);
  result = v_select((x < 0) & v_not<V>(whole) & (size < kInf<T>), V{} + kQuietNan<T>, result);
  result = v_select(odd, v_copysign(result, x), result);
  // A base of size 1 has no logarithm to multiply an infinite exponent by.
  result = v_select((size == 1) & (v_abs(y) == kInf<T>), V{} + 1, result);
  return v_select((x == 1) | (y == 0), V{} + 1, result);
}

// sqrt(x^2 + y^2). float32 in double precision, where squares do not overflow; float64 by a power
// of two that brings the larger one near 1, with the error of the square root taken back (the
// residue of a correctly rounded root is exact with the squares in two parts).
template <class V>
inline V v_hypot(V x, V y) {
  using T = ElementOf<V>;
  V a = v_abs(x), b = v_abs(y), result;
  if constexpr (sizeof(T) == 4) {
    result = v_by_double(x, y, [](auto u, auto v) { return v_sqrt(u * u + v * v); });
  } else {
    auto swapped = v_not<V>(a > b);
    V large = v_select(swapped, b, a), small = v_select(swapped, a, b);
    auto huge = large > T(0x1p500), tiny = large < T(0x1p-450);
    V one = V{} + 1, most = V{} + T(0x1p600), least = V{} + T(0x1p-600);
    V up = v_select(huge, least, v_select(tiny, most, one));
    V down = v_select(huge, most, v_select(tiny, least, one));
    large = large * up;
    small = small * up;
    Twice<V> square = v_product(large, large);
    V other = small * small;
    Twice<V> sum = v_fast_sum(square.high, other);
    V root = v_sqrt(sum.high);
    result = root + (square.low + sum.low) / (2 * root);
    result = v_select(large == 0, V{}, result) * down;
    result = v_select(v_not<V>((a <= kInf<T>)&(b <= kInf<T>)), a + b, result);  // NaN
  }
  return v_select((a == kInf<T>) | (b == kInf<T>), V{} + kInf<T>, result);
}

// ---- Remainders ----

// a - q b for the whole number q nearest to a / b, plus b if that is negative. It is exact, because
// the result needs no more bits than a number has.
template <class V>
inline V v_fmod_step(V a, V b) {
  V q = v_round(a / b).value, r;
  if constexpr (VecTraits<V>::kHasFma) {
    r = v_fma(-q, b, a);
  } else {
    Twice<V> p = v_product(q, b);
    r = (a - p.high) - p.low;
  }
  return v_select(r < 0, r + b, r);
}
// The remainder of a >= 0 by b > 2^-950, both finite float64. While a quotient has too many bits, b
// times a power of two is taken away.
template <class V>
inline V v_fmod_positive(V a, V b) {
  auto far = a > b * 0x1p50;
  while (LAMELLA_UNLIKELY(v_any<V>(far))) {
    IntOf<V> gap = v_shift_right<V>(v_bits(a), 52) - v_shift_right<V>(v_bits(b), 52) - 50;
    V larger = v_from_bits<V>(v_bits(b) + (gap << 52));
    a = v_select(far, v_fmod_step(a, larger), a);
    far = a > b * 0x1p50;
  }
  return v_fmod_step(a, b);
}
template <class V>
inline V v_fmod_of_doubles(V x, V y) {
  using T = ElementOf<V>;
  V a = v_abs(x), b = v_abs(y);
  auto usual = (a < kInf<T>)&(b > 0) & (b < kInf<T>);
  auto tiny = b < 0x1p-900;
  V divisor = v_select(usual, v_select(tiny, b * 0x1p100, b), V{} + 1);
  // Without fused multiplication, the product with the quotient must not overflow.
  V scale = V{} + 1;
  if constexpr (!VecTraits<V>::kHasFma) scale = v_select(a > 0x1p1000, V{} + 0.25, scale);
  V r = v_fmod_positive(v_select(usual, a * scale, V{}), divisor * scale) / scale;
  if (LAMELLA_UNLIKELY(v_any<V>(tiny))) {  // what is left by 2^100 b, and then, scaled up, by b
    V rest = v_fmod_positive(v_select(tiny & usual, r * 0x1p100, V{}), divisor) * 0x1p-100;
    r = v_select(tiny, rest, r);
  }
  // NaN but for the remainder by infinity, which is x.
  V other = v_select((a < kInf<T>)&(b == kInf<T>), a, V{} + kQuietNan<T>);
  r = v_select(usual, r, other);
  return v_from_bits<V>(v_bits(r) | v_sign(x));
}
template <class V>
inline V v_fmod(V x, V y) {
  if constexpr (sizeof(ElementOf<V>) == 8) {
    return v_fmod_of_doubles(x, y);
  } else {
    if constexpr (VecTraits<V>::kHasFma) {
      V a = v_abs(x), b = v_abs(y);
      auto usual = (a < b * 0x1p20f) & (b > 0x1p-100f) & (b < kInf<float>);
      if (LAMELLA_LIKELY(!v_any<V>(v_not<V>(usual)))) return v_flip(v_fmod_step(a, b), v_sign(x));
    }
    return v_by_double(x, y, [](auto a, auto b) { return v_fmod_of_doubles(a, b); });
  }
}
// The remainder with the sign of the divisor, also for a zero.
template <class V>
inline V v_remainder(V x, V y) {
  V r = v_fmod(x, y);
  return v_copysign(v_select((r != 0) & (v_sign(r) != v_sign(y)), r + y, r), y);
}
template <class V>
inline V v_floor_divide(V x, V y) {
  using T = ElementOf<V>;
  V r = v_fmod(x, y);
  V q = (x - r) / y;
  q = v_select((r != 0) & (v_sign(r) != v_sign(y)), q - 1, q);
  // q is near a whole number; that one is taken.
  V floor = v_floor(q);
  floor = v_select(q - floor > T(0.5), floor + 1, floor);
  V zero = v_flip(V{}, v_sign(x) ^ v_sign(y));
  return v_select(y == 0, x / y, v_select(q == 0, zero, floor));
}
// Infinite quotients and divisors give the floor of the exact quotient; v_floor_divide gives NaN
// and -1 there, as NumPy and PyTorch do.
template <class V>
inline V v_floor_quotient(V x, V y) {
  using T = ElementOf<V>;
  return v_select((v_abs(x) == kInf<T>) | (v_abs(y) == kInf<T>), x / y, v_floor_divide(x, y));
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
