// What functions of vectors are written with, whatever the vectors are: bits of numbers, choice,
// powers of two, polynomials and tables, and sums and products in twice the precision.
//
// Note [Functions in vectors]
//   A function is written once, for vectors of float or double of any kind and width, and never
//   leaves the vector: where inputs need another way (a huge argument of sin, a negative one of
//   lgamma), that way is taken for the whole vector if any lane needs it, and chosen lane by lane.
//   Polynomials come from coefficients.h. v_fma is one rounding where the vectors have it (kHasFma)
//   and two elsewhere; functions are accurate with either, so their last bits may differ between
//   capabilities, but never with the length of a run or the number of threads.
//
// Note [Kinds of vectors]
//   A kind V has the operators of arithmetic and comparison, with vectors and with numbers; V{} is
//   zeros. A comparison gives a mask, which has & and |. VecTraits<V> says the rest:
//     T, Int, Mask           an element, the vector of integers of its size, and the mask
//     kMantissa, kBias       of T
//     kHasFma                whether v_fma rounds once
//     fma, sqrt              as v_fma and v_sqrt below, and so the next ones
//     abs, copysign, at_most, at_least, select, bits, from_bits, shift_right
//     complement(mask)       the other lanes
//     has_scaling()          whether ldexp is one instruction
//     ldexp, frexp_of_log    v_ldexp_by_bits and v_frexp_of_log_by_bits where there is no better
//     entry(n, first)        n - first, or 0 or the last entry where there is none
//     lookup(table, entry)   an element of a table of 32 floats or 16 doubles for each lane
//     looks_up()             whether that is one instruction
//     if_any(mask, way)      way(mask) if any lane is set
//   VecTraits<Int> has T, select and complement. Those of registers are in vec_math.h, those of the
//   compiler's values in graph/compiler/emitted_value.h, which lack what only rarer ways ask for
//   (any, gather, widen, narrow).
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "lamella/core/macros.h"
#include "lamella/kernels/cpu/simd/coefficients.h"
#include "lamella/kernels/cpu/simd/double_pieces.h"
#include "lamella/kernels/cpu/simd/float_pieces.h"

#ifndef CPU_CAPABILITY
#define CPU_CAPABILITY DEFAULT
#endif

namespace lamella::native {
inline namespace CPU_CAPABILITY {

template <class V>
struct VecTraits;
template <class V>
using IntOf = typename VecTraits<V>::Int;
template <class V>
using MaskOf = typename VecTraits<V>::Mask;
template <class V>
using ElementOf = typename VecTraits<V>::T;
template <class V>
inline constexpr auto kSignBit =
    static_cast<ElementOf<IntOf<V>>>(uint64_t{1} << (sizeof(ElementOf<V>) * 8 - 1));

template <class T>
inline constexpr T kInf = __builtin_huge_val();
template <class T>
inline constexpr T kQuietNan = __builtin_nan("");

// The vector x, or one that has the number x in each lane.
template <class V, class X>
inline V v_vector(X x) {
  if constexpr (std::is_same_v<X, V>) {
    return x;
  } else {
    return V{} + x;
  }
}
// a b + c; b and c may be numbers.
template <class V, class B, class C>
inline V v_fma(V a, B b, C c) {
  return VecTraits<V>::fma(a, v_vector<V>(b), v_vector<V>(c));
}
template <class V>
inline V v_sqrt(V x) {
  return VecTraits<V>::sqrt(x);
}
// NaN stays in both.
template <class V>
inline V v_at_most(V x, ElementOf<V> bound) {
  return VecTraits<V>::at_most(x, V{} + bound);
}
template <class V>
inline V v_at_least(V x, ElementOf<V> bound) {
  return VecTraits<V>::at_least(x, V{} + bound);
}
// a where the mask is set, b elsewhere; of floats or integers.
template <class M, class V>
inline V v_select(M mask, V a, V b) {
  return VecTraits<V>::select(mask, a, b);
}
template <class V>
inline MaskOf<V> v_not(MaskOf<V> mask) {
  return VecTraits<V>::complement(mask);
}
// Takes the other way, way(mask), if any lane is set.
template <class V, class F>
inline void v_if_any(MaskOf<V> mask, const F& way) {
  VecTraits<V>::if_any(mask, way);
}
template <class V>
inline bool v_any(MaskOf<V> mask) {
  return VecTraits<V>::any(mask);
}

// ---- Bits ----

template <class V>
inline IntOf<V> v_bits(V x) {
  return VecTraits<V>::bits(x);
}
template <class V>
inline V v_from_bits(IntOf<V> bits) {
  return VecTraits<V>::from_bits(bits);
}

template <class V>
inline V v_abs(V x) {
  return VecTraits<V>::abs(x);
}
// The sign bit of `x` alone.
template <class V>
inline IntOf<V> v_sign(V x) {
  return v_bits(x) & kSignBit<V>;
}
template <class V>
inline V v_flip(V x, IntOf<V> sign) {
  return v_from_bits<V>(v_bits(x) ^ sign);
}
template <class V>
inline V v_copysign(V size, V sign) {
  return VecTraits<V>::copysign(size, sign);
}
// Logical, whatever the sign.
template <class V>
inline IntOf<V> v_shift_right(IntOf<V> x, int by) {
  return VecTraits<V>::shift_right(x, by);
}

// ---- Whole numbers and powers of two ----

// Added and taken away, it rounds to the nearest whole number, ties to even; in between, the lowest
// bits hold that number. Of sizes below a quarter of it.
template <class T>
inline constexpr T kRounder = sizeof(T) == 4 ? T(12582912.0) : T(6755399441055744.0);

template <class V>
struct Rounded {
  V value;
  IntOf<V> whole;
};
template <class V>
inline Rounded<V> v_whole_of_shifted(V shifted) {
  using T = ElementOf<V>;
  return {shifted - kRounder<T>, v_bits(shifted) - v_bits(V{} + kRounder<T>)};
}
template <class V>
inline Rounded<V> v_round(V x) {
  return v_whole_of_shifted(x + kRounder<ElementOf<V>>);
}
// Of any size.
template <class V>
inline V v_rint(V x) {
  using T = ElementOf<V>;
  V size = v_abs(x);
  constexpr T kWhole = sizeof(T) == 4 ? T(8388608.0) : T(4503599627370496.0);
  return v_select(size < kWhole, v_copysign((size + kWhole) - kWhole, x), x);
}
template <class V>
inline V v_trunc(V x) {
  V size = v_abs(x), near = v_abs(v_rint(x));
  return v_copysign(v_select(near > size, near - 1, near), x);
}
template <class V>
inline V v_floor(V x) {
  V near = v_rint(x);
  return v_select(near > x, near - 1, near);
}

// 2^n of normal size.
template <class V>
inline V v_power_of_two(IntOf<V> n) {
  return v_from_bits<V>((n + VecTraits<V>::kBias) << VecTraits<V>::kMantissa);
}
// x 2^n, rounded once, for n within twice the range of exponents.
template <class V>
inline V v_ldexp_by_bits(V x, Rounded<V> n) {
  constexpr int kFar = 1 << 14;
  IntOf<V> half = v_shift_right<V>(n.whole + kFar, 1) - kFar / 2;
  return x * v_power_of_two<V>(half) * v_power_of_two<V>(n.whole - half);
}
template <class V>
inline V v_ldexp(V x, Rounded<V> n) {
  return VecTraits<V>::ldexp(x, n);
}
// 2^-n, where that is normal.
template <class V>
inline V v_negative_power(V n) {
  if (VecTraits<V>::has_scaling()) return v_ldexp(V{} + 1, Rounded<V>{-n, IntOf<V>{}});
  return v_power_of_two<V>(-v_round(n).whole);
}

// x = m 2^n with m in [3/4, 3/2), for positive finite x; and log(m) + n log(2) is as it should be
// for every x: NaN below 0, infinite at 0 and infinity.
template <class V>
struct Parts {
  V mantissa, exponent;
};
template <class V>
inline Parts<V> v_frexp_of_log_by_bits(V x) {
  using T = ElementOf<V>;
  using Traits = VecTraits<V>;
  constexpr T kNormal = sizeof(T) == 4 ? T(0x1p-126) : T(0x1p-1022);
  constexpr T kUp = sizeof(T) == 4 ? T(0x1p24) : T(0x1p54);
  auto tiny = x < kNormal;
  V scaled = v_select(tiny, x * kUp, x);
  // From the bits of 3/4 on, the exponent counts in steps of 1; biased, it is never negative.
  constexpr int kMantissa = Traits::kMantissa;
  constexpr T kUnit = sizeof(T) == 4 ? T(0x1p23) : T(0x1p52);
  IntOf<V> base = v_bits(V{} + T(0.75)), bias = v_bits(V{} + 1);
  IntOf<V> n = v_shift_right<V>(v_bits(scaled) - base + bias, kMantissa);
  V m = v_from_bits<V>(v_bits(scaled) - (n << kMantissa) + bias);
  // As the last bits of a number of the size of kUnit it needs no conversion.
  V exponent = v_from_bits<V>(n | v_bits(V{} + kUnit)) - (kUnit + Traits::kBias);
  exponent = v_select(tiny, exponent - T(sizeof(T) == 4 ? 24 : 54), exponent);
  m = v_select(x > 0, m, V{} + kQuietNan<T>);
  m = v_select((x == 0) | (x == kInf<T>), V{} + 1, m);
  exponent = v_select(x == 0, V{} - kInf<T>, v_select(x == kInf<T>, x, exponent));
  return {m, exponent};
}
template <class V>
inline Parts<V> v_frexp_of_log(V x) {
  return VecTraits<V>::frexp_of_log(x);
}

// ---- Polynomials and tables ----

// sum x^I + coefficient(I - 1) x^(I - 1) + ..., by Horner's rule.
template <int I, class V, class F>
inline V v_horner(V sum, V x, const F& coefficient) {
  if constexpr (I == 0) {
    return sum;
  } else {
    return v_horner<I - 1>(v_fma(sum, x, coefficient(I - 1)), x, coefficient);
  }
}
// c[0] + c[1] x + ...
template <class V, class T, size_t N>
inline V v_polynomial(V x, const T (&c)[N]) {
  return v_horner<N - 1>(V{} + c[N - 1], x, [&](int i) { return V{} + c[i]; });
}

// An entry of a table of 32 floats or 16 doubles for each lane.
template <class V, class I>
inline V v_lookup(const ElementOf<V>* table, I entry) {
  return VecTraits<V>::lookup(table, entry);
}

// ---- float32 in double precision ----

// For kinds that have vectors of doubles: VecTraits<V>::widen(x) gives the `low` and `high` half of
// the lanes, and narrow({low, high}) takes them back.
template <class V, class F>
inline V v_by_double(V x, const F& f) {
  using Traits = VecTraits<V>;
  auto wide = Traits::widen(x);
  return Traits::narrow({f(wide.low), f(wide.high)});
}
template <class V, class F>
inline V v_by_double(V x, V y, const F& f) {
  using Traits = VecTraits<V>;
  auto a = Traits::widen(x), b = Traits::widen(y);
  return Traits::narrow({f(a.low, b.low), f(a.high, b.high)});
}

// ---- Twice the precision ----

// The unevaluated sum of two numbers (T. Dekker, A floating-point technique for extending the
// available precision, Numerische Mathematik 18, 1971).
template <class V>
struct Twice {
  V high, low;
};
// |a| >= |b|, or a is 0.
template <class V>
inline Twice<V> v_fast_sum(V a, V b) {
  V sum = a + b;
  return {sum, b - (sum - a)};
}
template <class V>
inline Twice<V> v_sum(V a, V b) {
  V sum = a + b, of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}
// The upper half of the bits of x.
template <class V>
inline V v_upper(V x) {
  constexpr int kDrop = sizeof(ElementOf<V>) == 4 ? 12 : 27;
  return v_from_bits<V>(v_bits(x) & ~(((IntOf<V>{} + 1) << kDrop) - 1));
}
// The sum of both, again in two parts.
template <class V>
inline Twice<V> v_add(Twice<V> a, V b) {
  Twice<V> sum = v_sum(a.high, b);
  return v_fast_sum(sum.high, sum.low + a.low);
}
// The rounding error of p = a b.
template <class V>
inline V v_product_error(V a, V b, V p) {
  if constexpr (VecTraits<V>::kHasFma) {
    return v_fma(a, b, -p);
  } else {
    V ah = v_upper(a), bh = v_upper(b), al = a - ah, bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
  }
}
template <class V>
inline Twice<V> v_product(V a, V b) {
  V p = a * b;
  return {p, v_product_error(a, b, p)};
}

// ---- Functions in pieces ----

// The entry of x in the tables.
template <class V, class T, int N, bool R>
inline auto v_piece_of(V x, const Piecewise<T, N, R>& p) {
  return VecTraits<V>::entry(v_shift_right<V>(v_bits(x), p.shift), p.first - 1);
}
// See Piecewise; of x + low, for a `low` of the size of x's rounding. The result is NaN where x is.
template <class V, class T, int N>
inline Twice<V> v_piecewise_twice(V x, const Piecewise<T, N>& p, V low) {
  auto at = v_piece_of(x, p);
  V t = x - v_lookup<V>(p.center, at) + low;
  V sum = v_horner<N - 2>(v_lookup<V>(p.c[N - 1], at), t,
                          [&](int i) { return v_lookup<V>(p.c[i + 1], at); });
  return v_fast_sum(v_lookup<V>(p.c[0], at), v_fma(sum, t, v_lookup<V>(p.rest, at)));
}
// -0 as `low` changes no x, so that the compiler leaves it out.
template <class V, class T, int N>
inline Twice<V> v_piecewise_twice(V x, const Piecewise<T, N>& p) {
  return v_piecewise_twice(x, p, -V{});
}
template <class V, class T, int N>
inline V v_piecewise(V x, const Piecewise<T, N>& p) {
  return v_piecewise_twice(x, p).high;
}
template <class V, class T, int N>
inline V v_piecewise(V x, const Piecewise<T, N, false>& p) {
  auto at = v_piece_of(x, p);
  V t = x - v_lookup<V>(p.center, at);
  return v_horner<N - 1>(v_lookup<V>(p.c[N - 1], at), t,
                         [&](int i) { return v_lookup<V>(p.c[i], at); });
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
