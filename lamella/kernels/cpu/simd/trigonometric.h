// Sine, cosine and tangent in vectors, of any argument.
#pragma once
#include "lamella/kernels/cpu/simd/vector_kinds.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {

// pi / 2 in parts, for either precision. The second part is a multiple of the last bit that an x
// above pi / 4 has, so that what is left after it is exact.
template <class T>
inline constexpr T kHalfPi1 = sizeof(T) == 4 ? T(0x1.921cp+0) : T(0x1.921fb54400000p+0);
template <class T>
inline constexpr T kHalfPi2 = sizeof(T) == 4 ? T(0x1.da8p-15) : T(0x1.0b462p-34);
template <class T>
inline constexpr T kHalfPi3 = sizeof(T) == 4 ? T(0x1.110cp-26) : T(-0x1.cb3b399dp-55);
template <class T>
inline constexpr T kHalfPi4 =
    sizeof(T) == 4 ? T(-0x1.73dcb3b399d74p-43) : T(-0x1.d1fc8f8cbb5bfp-89);

// x = n pi / 2 + r, where |r| exceeds pi / 4 by rounding errors at most; n is right modulo 4.
template <class V>
struct Quadrant {
  V r;
  V rest;  // what rounding took from r
  IntOf<V> n;
};

// Note [Huge arguments]
//   Of x 2 / pi only the part below 8 matters (M. Payne, R. Hanek, Radian reduction for
//   trigonometric functions, SIGNUM Newsletter 18, 1983). 2 / pi comes in pieces of 24 bits and x
//   in halves of 26 and 27, so that their products are exact. Pieces whose product with the last
//   bit of x is a multiple of 8 are left out; nine further ones are added from the largest on, and
//   whole eights taken away as soon as they appear. What is left is exact as a sum of two numbers,
//   however much of it cancels: no double is nearer than 2^-62 to a multiple of pi / 2 (J.-M.
//   Muller, Elementary Functions, chapter 11).
template <class V>
LAMELLA_NOINLINE inline Quadrant<V> v_reduce_huge(V x) {
  using I = IntOf<V>;
  I exponent = (v_shift_right<V>(v_bits(x), 52) & 0x7ff) - 1023;
  I first = (exponent - 55) * 683;  // 683 / 2^14 is 1 / 24 closely enough
  first = v_select(first < 0, I{}, v_shift_right<V>(first, 14));
  V scaled = v_from_bits<V>(v_bits(x) - (first * 24 << 52));
  V upper = v_from_bits<V>(v_bits(scaled) & ~((int64_t{1} << 27) - 1));
  V lower = scaled - upper;
  Twice<V> sum = {};
  V weight = V{} + 0x1p-24;
  for (int k = 0; k < 9; ++k) {
    V piece = VecTraits<V>::gather(kTwoOverPi + k, first);
    piece *= weight;
    weight *= 0x1p-24;
    const V terms[] = {upper * piece, lower * piece};
    for (V term : terms) {
      term -= 8 * v_rint(term * 0.125);
      sum = v_add(sum, term);
      V eights = 8 * v_rint(sum.high * 0.125);
      sum = v_fast_sum(sum.high - eights, sum.low);
    }
  }
  Rounded<V> n = v_round(sum.high);
  Twice<V> part = v_sum(sum.high - n.value, sum.low);
  // Times pi / 2.
  constexpr double kUpper = 0x1.921fb54442d18p+0, kLower = 0x1.1a62633145c07p-54;
  Twice<V> r = v_product(part.high, V{} + kUpper);
  r = v_fast_sum(r.high, r.low + (part.low * kUpper + part.high * kLower));
  return {r.high + 0 * x, r.low, n.whole};  // NaN for infinities
}
template <class V>
inline Quadrant<V> v_reduce(V x);
// float32 in double precision.
template <class V>
LAMELLA_NOINLINE inline Quadrant<V> v_reduce_large(V x) {
  using Traits = VecTraits<V>;
  auto wide = Traits::widen(x);
  auto low = v_reduce(wide.low), high = v_reduce(wide.high);
  V r = Traits::narrow({low.r, high.r});
  auto rounded = Traits::widen(r);
  V rest = Traits::narrow({low.r - rounded.low, high.r - rounded.high});
  return {r, rest, Traits::narrow(low.n, high.n)};
}

// Cody and Waite's reduction, with pi / 2 in parts of which all but the last are exact times n.
template <class V>
inline Quadrant<V> v_reduce(V x) {
  using T = ElementOf<V>;
  constexpr T kLimit = sizeof(T) == 4 ? T(400) : T(1e6);
  Rounded<V> n = v_whole_of_shifted(v_fma(x, T(0.63661977236758134308), kRounder<T>));
  V r = v_fma(n.value, V{} - kHalfPi1<T>, x);
  r = v_fma(n.value, V{} - kHalfPi2<T>, r);
  V third = n.value * kHalfPi3<T>, s = r - third;
  V rest = v_fma(n.value, V{} - kHalfPi4<T>, (r - s) - third);
  Quadrant<V> result = {s, rest, n.whole};
  v_if_any<V>(v_not<V>(v_abs(x) <= kLimit), [&](auto beyond) {
    Quadrant<V> far;
    if constexpr (sizeof(T) == 4) {
      far = v_reduce_large(x);
    } else {
      far = v_reduce_huge(x);
    }
    result.r = v_select(beyond, far.r, result.r);
    result.rest = v_select(beyond, far.rest, result.rest);
    result.n = v_select(beyond, far.n, result.n);
  });
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
  return v_flip(v_select((n & 1) != 0, both.cos, both.sin), (n & 2) << kTop);
}
template <class V>
inline V v_sin(V x) {
  Quadrant<V> q = v_reduce(x);
  V result = v_sin_of(q, q.n);
  return v_select(x == 0, x, result);
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
  V result = v_select((q.n & 1) != 0, v_fma(cot * cot, lost, cot), tan);
  return v_select(x == 0, x, result);
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
