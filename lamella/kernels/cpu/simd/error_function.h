// The error function, the normal distribution and their inverses in vectors.
#pragma once
#include "lamella/kernels/cpu/simd/logarithm.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {

template <class V>
inline V v_erf(V x) {
  using T = ElementOf<V>;
  V size = v_at_most(v_abs(x), sizeof(T) == 4 ? T(4) : T(6));
  return v_copysign(v_select(size < 1, size, V{}) + v_piecewise(size, Pieces<T>::erf), x);
}

// ---- The tail of the normal distribution ----

// Note [Tails]
//   The normal distribution function of -x, for x >= 0, is exp(-x^2 / 2) M(x), where M falls slowly
//   (half of Mills' ratio times sqrt(2 / pi)). M is tabulated; the square is taken in two parts, so
//   that the result keeps its relative accuracy until it underflows. erfc, erfcx, log_ndtr and gelu
//   are made of M.

// Beyond this x the normal distribution function of -x is 0, and that of x is 1.
template <class T>
inline constexpr T kTailEnd = sizeof(T) == 4 ? T(15) : T(39);
// sqrt(2) as the sum of kRootTwo and kRootTwoRest.
template <class T>
inline constexpr T kRootTwo = T(1.41421356237309504880);
template <class T>
inline constexpr T kRootTwoRest =
    sizeof(T) == 4 ? T(0x1.9fcef32422cbfp-26) : T(-0x1.bdd3413b26456p-54);
// M for any x >= 0, by the asymptotic series where the table ends.
template <class V>
inline V v_tail_factor_anywhere(V x) {
  using T = ElementOf<V>;
  constexpr T kEnd = sizeof(T) == 4 ? T(24) : T(45);
  V near = v_piecewise(v_at_most(x, kEnd), Pieces<T>::mills);
  V inverse = 1 / x;
  constexpr double c = 0.39894228040143267794;  // 1 / sqrt(2 pi)
  static constexpr T kSeries[] = {T(c), T(-c), T(3 * c), T(-15 * c), T(105 * c), T(-945 * c)};
  V far = v_polynomial(inverse * inverse, kSeries) / x;
  return v_select(x > kEnd, far, near);
}
// M for 0 <= x <= kTailEnd. One division costs less than nine lookups in tables where a lookup is
// several shuffles.
template <class V>
inline Twice<V> v_tail_quotient(V x) {
  V sum = x + 1.5f, inverse = 1 / sum;
  V p = v_polynomial(v_fma(V{} - 3, inverse, V{} + 1), Coefficients<float>::mills);
  V high = p * inverse;
  // `rest` is the relative rounding error of the inverse; the low part adds that of the product.
  V rest = v_fma(-sum, inverse, V{} + 1) - (x - (sum - 1.5f)) * inverse;
  return {high, v_fma(high, rest, v_fma(p, inverse, -high))};
}
template <class V>
constexpr bool by_quotient() {
  return VecTraits<V>::kHasFma && !VecTraits<V>::looks_up();
}
// exp(-(x^2) / 2) M(x) for 0 <= x <= kTailEnd; M by a table unless it is given.
template <class V, class Factor>
inline V v_normal_tail(V x, Factor factor) {
  using T = ElementOf<V>;
  Twice<V> square = v_product(x, x);
  return v_exp_times(square.high * T(-0.5), square.low * T(-0.5), factor);
}
template <class V>
inline V v_normal_tail(V x) {
  using T = ElementOf<V>;
  return v_normal_tail(x, v_piecewise(x, Pieces<T>::mills));
}
template <class V>
inline V v_erfc(V x) {
  using T = ElementOf<V>;
  V size = v_at_most(v_abs(x), kTailEnd<T> * T(0.7071));
  Twice<V> square = v_product(size, size);
  Twice<V> argument = v_product(size, V{} + kRootTwo<T>);
  Twice<V> factor = v_piecewise_twice(argument.high, Pieces<T>::mills,
                                      v_fma(size, V{} + kRootTwoRest<T>, argument.low));
  factor = {factor.high * 2, factor.low * 2};
  V tail = v_exp_times(-square.high, -square.low, factor);
  return v_select(x < 0, 2 - tail, tail);
}
// exp(x^2) erfc(x); for negative x that is 2 exp(x^2) - erfcx(-x).
template <class V>
inline V v_erfcx(V x) {
  using T = ElementOf<V>;
  V size = v_abs(x);
  V factor = 2 * v_tail_factor_anywhere(size * kRootTwo<T>);
  if (LAMELLA_LIKELY(!v_any<V>(x < 0))) return factor;
  V cut = v_at_most(size, sizeof(T) == 4 ? T(10) : T(28));
  Twice<V> square = v_product(cut, cut);
  return v_select(x < 0, 2 * v_exp(square.high, square.low) - factor, factor);
}
template <class V>
inline V v_log_ndtr(V x) {
  using T = ElementOf<V>;
  V size = v_abs(x);
  V above = v_log1p(-v_normal_tail(v_at_most(size, kTailEnd<T>)));
  if (LAMELLA_LIKELY(!v_any<V>(x < 0))) return above;
  V below = v_log(v_tail_factor_anywhere(size)) - T(0.5) * x * x;
  return v_select(x < 0, v_select(size == kInf<T>, x, below), above);
}
// x times the normal distribution function.
template <class V>
inline V v_gelu_of(V x, V tail) {
  // An infinite x must not meet a tail of 0.
  return v_at_least(x, -kTailEnd<ElementOf<V>>) * v_select(x < 0, tail, 1 - tail);
}
template <class V>
inline V v_gelu(V x) {
  using T = ElementOf<V>;
  V size = v_at_most(v_abs(x), kTailEnd<T>);
  if constexpr (sizeof(T) == 4) {
    if (by_quotient<V>()) return v_gelu_of(x, v_normal_tail(size, v_tail_quotient(size)));
  }
  return v_gelu_of(x, v_normal_tail(size));
}
// gelu of float16 and bfloat16, which need only the first terms of the polynomials, and no
// correction for the rounding of the square. Without fused multiply-add their kernels take v_gelu.
template <int kTerms, class V>
inline V v_gelu_small(V x) {
  if constexpr (sizeof(ElementOf<V>) == 8 || !VecTraits<V>::kHasFma) {
    return v_gelu(x);
  } else {
    V size = v_at_most(v_abs(x), kTailEnd<float>);
    if (by_quotient<V>()) {
      return v_gelu_of(x, v_exp_times(size * size * -0.5f, -V{}, v_tail_quotient(size).high));
    }
    constexpr const auto& kMills = Pieces<float>::mills;
    auto at = v_piece_of(size, kMills);
    V t = size - v_lookup<V>(kMills.center, at);
    V factor = v_horner<kTerms - 1>(v_lookup<V>(kMills.c[kTerms - 1], at), t,
                                    [&](int i) { return v_lookup<V>(kMills.c[i], at); });
    return v_gelu_of(x, v_exp_times(size * size * -0.5f, -V{}, factor));
  }
}
template <class V>
inline V v_gelu_half(V x) {
  return v_gelu_small<4>(x);
}
template <class V>
inline V v_gelu_bfloat16(V x) {
  return v_gelu_small<3>(x);
}

// ---- Inverses ----

// erfinv(x) / x, from w = -log(1 - x^2).
template <class V>
inline Twice<V> v_erfinv_factor(V w) {
  using T = ElementOf<V>;
  if constexpr (sizeof(T) == 4) {
    return v_piecewise_twice(w, Pieces<T>::erfinv);
  } else {
    Twice<V> near = v_piecewise_twice(v_at_most(w, T(80)), Pieces<T>::erfinv);
    auto far = w > 64;
    if (LAMELLA_LIKELY(!v_any<V>(far))) return near;
    return {v_select(far, v_piecewise(w, Pieces<T>::erfinv_far), near.high),
            v_select(far, V{}, near.low)};
  }
}
template <class V>
inline V v_erfinv_argument(V x) {
  V size = v_abs(x);
  return 0 - v_log((1 - size) * (1 + size));
}
template <class V>
inline V v_erfinv_at(V x, V w) {
  return v_select(v_abs(x) == 1, x * kInf<ElementOf<V>>, x * v_erfinv_factor(w).high);
}
template <class V>
inline V v_erfinv(V x) {
  return v_erfinv_at(x, v_erfinv_argument(x));
}
// sqrt(2) erfinv(2 p - 1), where 1 - (2 p - 1)^2 = 4 p (1 - p).
template <class V>
inline V v_ndtri(V p) {
  using T = ElementOf<V>;
  Twice<V> inverse = v_erfinv_factor(0 - v_log(4 * (p * (1 - p))));
  Twice<V> factor = v_product(inverse.high, V{} + kRootTwo<T>);
  factor.low += v_fma(inverse.low, V{} + kRootTwo<T>, inverse.high * kRootTwoRest<T>);
  V place = 2 * p - 1;
  V result = VecTraits<V>::kHasFma ? v_fma(2 * p, factor.high, -factor.high) : place * factor.high;
  result = v_fma(place, factor.low, result);
  return v_select((p == 0) | (p == 1), (2 * p - 1) * kInf<T>, result);
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
