// Sine, cosine and tangent in vectors, of any argument.
#pragma once
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {

// pi / 2 in parts, for either precision.
inline constexpr double kHalfPi1 = 0x1.921fb54400000p+0;
inline constexpr double kHalfPi2 = 0x1.0b4611a600000p-34;
inline constexpr double kHalfPi3 = 0x1.3198a2e000000p-69;
inline constexpr double kHalfPi4 = 0x1.b839a252049c1p-104;
inline constexpr float kHalfPi1F = 0x1.921cp+0f;
inline constexpr float kHalfPi2F = 0x1.daa0p-15f;
inline constexpr float kHalfPi3F = 0x1.10b4p-30f;
inline constexpr float kHalfPi4F = 0x1.8469898cc5170p-48f;

// x = n pi / 2 + r, where |r| exceeds pi / 4 by rounding errors at most; n is right modulo 4.
template <class V>
struct Quadrant {
  V r;
  V rest;  // what rounding took from r
  IntOf<V> n;
};

// Note [Huge arguments]
//   Only x 2 / pi modulo 8 matters (M. Payne, R. Hanek, Radian reduction for trigonometric
//   functions, SIGNUM Newsletter 18, 1983). 2 / pi is stored in pieces of 24 bits and x is split
//   into halves of 26 and 27, so that their products are exact. Pieces whose product with the last
//   bit of x is a multiple of 8 are left out; the nine next ones are added from the largest on, and
//   multiples of 8 are subtracted as soon as they appear. The rest is exact as a sum of two numbers
//   despite cancellation: no double is nearer than 2^-62 to a multiple of pi / 2 (J.-M. Muller,
//   Elementary Functions, chapter 11).
LAMELLA_NOINLINE inline Quadrant<VecD> v_reduce_huge(VecD x) {
  VecL exponent = (v_shift_right<VecD>(v_bits(x), 52) & 0x7ff) - 1023;
  VecL first = (exponent - 55) * 683;  // 683 / 2^14 is 1 / 24 closely enough
  first = first < 0 ? VecL{} : v_shift_right<VecD>(first, 14);
  VecD scaled = v_from_bits<VecD>(v_bits(x) - (first * 24 << 52));
  VecD upper = v_from_bits<VecD>(v_bits(scaled) & ~((int64_t{1} << 27) - 1));
  VecD lower = scaled - upper;
  Twice<VecD> sum = {};
  VecD weight = VecD{} + 0x1p-24;
  for (int k = 0; k < 9; ++k) {
    VecD piece;
    for (int i = 0; i < kLanesOf<VecD>; ++i) piece[i] = kTwoOverPi[first[i] + k];
    piece *= weight;
    weight *= 0x1p-24;
    for (VecD term : {upper * piece, lower * piece}) {
      term -= 8 * v_rint(term * 0.125);
      sum = v_add(sum, term);
      VecD eights = 8 * v_rint(sum.high * 0.125);
      sum = v_fast_sum(sum.high - eights, sum.low);
    }
  }
  Rounded<VecD> n = v_round(sum.high);
  Twice<VecD> part = v_sum(sum.high - n.value, sum.low);
  // Multiplies by pi / 2.
  constexpr double kUpper = 0x1.921fb54442d18p+0, kLower = 0x1.1a62633145c07p-54;
  Twice<VecD> r = v_product(part.high, VecD{} + kUpper);
  r = v_fast_sum(r.high, r.low + (part.low * kUpper + part.high * kLower));
  return {r.high + 0 * x, r.low, n.whole};  // NaN for infinities
}

// Cody and Waite's reduction: pi / 2 is split into parts, and only the product of the last one
// with n is rounded.
inline Quadrant<VecD> v_reduce(VecD x) {
  constexpr double kLimit = 1e6;
  Rounded<VecD> n = v_whole_of_shifted(v_fma(x, 0.63661977236758134308, kRounder<double>));
  VecD r = v_fma(n.value, VecD{} - kHalfPi1, x);
  r = v_fma(n.value, VecD{} - kHalfPi2, r);
  VecD third = n.value * kHalfPi3, s = r - third;
  VecD rest = v_fma(n.value, VecD{} - kHalfPi4, (r - s) - third);
  Quadrant<VecD> result = {s, rest, n.whole};
  auto huge = ~(v_abs(x) <= kLimit);
  if (LAMELLA_UNLIKELY(v_any(huge))) {
    Quadrant<VecD> far = v_reduce_huge(x);
    result.r = huge ? far.r : result.r;
    result.rest = huge ? far.rest : result.rest;
    result.n = huge ? far.n : result.n;
  }
  return result;
}
LAMELLA_NOINLINE inline Quadrant<VecF> v_reduce_large(VecF x) {
  Wide wide = v_widen(x);
  Quadrant<VecD> low = v_reduce(wide.low), high = v_reduce(wide.high);
  VecF r = v_narrow({low.r, high.r});
  Wide rounded = v_widen(r);
  return {
      r, v_narrow({low.r - rounded.low, high.r - rounded.high}),
      v_join<VecI>(__builtin_convertvector(low.n, HalfI), __builtin_convertvector(high.n, HalfI))};
}
inline Quadrant<VecF> v_reduce(VecF x) {
  constexpr float kLimit = 400;
  Rounded<VecF> n = v_whole_of_shifted(v_fma(x, 0.63661977f, kRounder<float>));
  VecF r = v_fma(n.value, VecF{} - kHalfPi1F, x);
  r = v_fma(n.value, VecF{} - kHalfPi2F, r);
  VecF third = n.value * kHalfPi3F, s = r - third;
  VecF rest = v_fma(n.value, VecF{} - kHalfPi4F, (r - s) - third);
  Quadrant<VecF> result = {s, rest, n.whole};
  auto large = ~(v_abs(x) <= kLimit);
  if (LAMELLA_UNLIKELY(v_any(large))) {
    Quadrant<VecF> far = v_reduce_large(x);
    result.r = large ? far.r : result.r;
    result.rest = large ? far.rest : result.rest;
    result.n = large ? far.n : result.n;
  }
  return result;
}

template <class V>
struct SinCos {
  V sin, cos;
};
// Sine and cosine of r + rest.
template <class V>
inline SinCos<V> v_sincos_of(const Quadrant<V>& q) {
  using T = ElementOf<V>;
  V z = q.r * q.r;
  V cubic = v_fma(z * q.r, v_polynomial(z, Coefficients<T>::sin), q.rest);
  // The rounding error of 1 - z / 2 is added to the rest.
  V half = z * T(0.5), most = 1 - half, lost = (1 - most) - half;
  V quartic = v_fma(z * z, v_polynomial(z, Coefficients<T>::cos), lost);
  quartic = v_fma(-q.r, q.rest, quartic);
  return {q.r + cubic, most + quartic};
}
template <class V>
inline V v_sin_of(const Quadrant<V>& q, IntOf<V> n) {
  SinCos<V> both = v_sincos_of(q);
  constexpr int kTop = sizeof(ElementOf<V>) * 8 - 2;
  return v_flip((n & 1) != 0 ? both.cos : both.sin, (n & 2) << kTop);
}
template <class V>
inline V v_sin(V x) {
  Quadrant<V> q = v_reduce(x);
  V result = v_sin_of(q, q.n);
  return x == 0 ? x : result;
}
template <class V>
inline V v_cos(V x) {
  Quadrant<V> q = v_reduce(x);
  return v_sin_of(q, q.n + 1);
}
template <class V>
inline V v_tan(V x) {
  using T = ElementOf<V>;
  Quadrant<V> q = v_reduce(x);
  V z = q.r * q.r;
  V more = v_fma(z * q.r, v_polynomial(z, Coefficients<T>::tan), q.rest);
  V tan = q.r + more, cot = -1 / tan;
  // Corrects for the sum's rounding error d to first order: -1 / (t + d) = w + w^2 d, w = -1 / t.
  V lost = more - (tan - q.r);
  V result = (q.n & 1) != 0 ? v_fma(cot * cot, lost, cot) : tan;
  return x == 0 ? x : result;
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
