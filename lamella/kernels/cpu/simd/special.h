// Functions of the gamma family, Bessel functions and other special ones in vectors. float32 is
// computed in double precision unless noted otherwise.
#pragma once
#include "lamella/kernels/cpu/simd/gamma_pieces.h"
#include "lamella/kernels/cpu/simd/power.h"
#include "lamella/kernels/cpu/simd/trigonometric.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {

// ---- sin(pi x) ----

// x = n / 2 + r, which is exact, and then pi r in two parts.
template <class V>
inline Quadrant<V> v_reduce_pi(V x) {
  using T = ElementOf<V>;
  V whole = x - 2 * v_rint(x * T(0.5));  // modulo 2
  Rounded<V> n = v_round(2 * whole);
  V r = whole - n.value * T(0.5);
  constexpr T kPi = T(3.14159265358979323846);
  constexpr T kRest = sizeof(T) == 4 ? T(-0x1.777a5cf72cecep-24) : T(0x1.1a62633145c07p-53);
  Twice<V> angle = v_product(r, V{} + kPi);
  angle.low += r * kRest;
  return {angle.high, angle.low, n.whole};
}
template <class V>
inline V v_sinc(V x) {
  using T = ElementOf<V>;
  Quadrant<V> q = v_reduce_pi(x);
  constexpr T kRest = sizeof(T) == 4 ? T(-0x1.777a5cf72cecep-24) : T(0x1.1a62633145c07p-53);
  Twice<V> down = v_product(x, V{} + T(3.14159265358979323846));
  V result = v_sin_of(q, q.n) / down.high;
  result = v_fma(result, -(down.low + x * kRest) / down.high, result);
  return x == 0 ? V{} + 1 : result;
}

// ---- Gamma ----

// From this x on the asymptotic series are used (M. Abramowitz, I. Stegun, Handbook of Mathematical
// Functions, 6.1.41, 6.3.18, 6.4.12); below, tables of functions of x + 1, divided by their zeros.
inline constexpr double kAsymptotic = 8;

// log(x) in two parts.
inline Twice<VecD> v_log_twice(VecD x) {
  Parts<VecD> parts = v_frexp_of_log(x);
  VecD n = parts.exponent, f = parts.mantissa - 1;
  Twice<VecD> small = v_fast_sum(f, v_fma(n, VecD{} + kLog2Lower<double>, v_log_rest(f)));
  Twice<VecD> log = v_sum(n * kLog2Upper<double>, small.high);
  return {log.high, log.low + small.low};
}
inline VecD v_lgamma_far(VecD x) {
  static constexpr double kSeries[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                       1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  Twice<VecD> log = v_log_twice(x);
  VecD inverse = 1 / x, z = inverse * inverse;
  Twice<VecD> less = v_fast_sum(log.high, VecD{} - 1);
  VecD rest = inverse * v_polynomial(z, kSeries) + (kHalfLogTwoPi - 0.5);
  VecD far = v_fma(x - 0.5, less.high, v_fma(x - 0.5, less.low + log.low, rest));
  return x > 1e300 ? x * (v_log(x) - 1) : far;
}
// Below 1 it is log(Gamma(x + 1)) - log(x), for negative x log(pi / |sin(pi x)|) - log(Gamma(1 -
// x)): one logarithm serves all lanes, and the series is computed where a lane asks for it.
inline VecD v_lgamma(VecD x) {
  auto negative = x < 0, tiny = v_abs(x) < 1e-30;  // where pi x might underflow
  VecD y = x, of_log = x;
  if (LAMELLA_UNLIKELY(v_any(negative))) {
    Quadrant<VecD> q = v_reduce_pi(x);
    VecD sine = v_abs(v_sin_of(q, q.n));
    y = negative ? 1 - x : x;
    of_log = tiny ? v_abs(x) : negative ? 3.14159265358979323846 / sine : x;
  }
  auto below = y < 1;
  VecD log = v_log(of_log), u = v_at_most(below ? y : y - 1, 7.0);
  Twice<VecD> zeros = v_product(u, u - 1), factor = v_piecewise_twice(u, GammaPieces::lgamma);
  zeros.low = v_fma(zeros.high, factor.low, zeros.low * factor.high);
  VecD value = v_fma(zeros.high, factor.high, zeros.low);
  auto near = y < kAsymptotic;
  if (v_any(VecTraits<VecD>::complement(near))) value = near ? value : v_lgamma_far(y);
  VecD result = negative ? log - value : below ? value - log : value;
  result = tiny ? -log : result;
  auto pole = x <= 0 && v_rint(x) == x;
  return pole || x == -kInf<double> ? VecD{} + kInf<double> : result;
}
inline VecD v_digamma_positive(VecD x) {
  static constexpr double kSeries[] = {-1.0 / 12,  1.0 / 120,     -1.0 / 252, 1.0 / 240,
                                       -1.0 / 132, 691.0 / 32760, -1.0 / 12,  3617.0 / 8160};
  constexpr double kRoot = 0x1.d8b618d5af8fep-2, kRootRest = -0x1.1e563779a1f5bp-56;
  VecD inverse = 1 / x, z = inverse * inverse;
  VecD far = v_log(x) + v_fma(z, v_polynomial(z, kSeries), inverse * -0.5);
  auto below = x < 1;
  VecD u = v_at_most(below ? x : x - 1, 7.0);
  VecD near = ((u - kRoot) - kRootRest) * v_piecewise(u, GammaPieces::digamma);
  near = below ? near - inverse : near;
  return x < kAsymptotic ? near : far;
}
// psi(1 - x) - pi / tan(pi x) for negative x.
inline VecD v_digamma(VecD x) {
  auto negative = x < 0;
  if (LAMELLA_LIKELY(!v_any(negative | (x == 0)))) return v_digamma_positive(x);
  Quadrant<VecD> q = v_reduce_pi(x);
  SinCos<VecD> both = v_sincos_of(q);
  auto odd = (q.n & 1) != 0;
  VecD cot = odd ? -both.sin / both.cos : both.cos / both.sin;
  VecD value = v_digamma_positive(negative ? 1 - x : x);
  VecD result = negative ? value - 3.14159265358979323846 * cot : value;
  result = negative && v_rint(x) == x ? VecD{} + kQuietNan<double> : result;
  return x == 0 ? v_flip(VecD{} - kInf<double>, v_sign(x)) : result;
}
inline VecD v_trigamma_positive(VecD x) {
  static constexpr double kSeries[] = {1.0 / 6,       -1.0 / 30,      1.0 / 42, -1.0 / 30,
                                       5.0 / 66,      -691.0 / 2730,  7.0 / 6,  -3617.0 / 510,
                                       43867.0 / 798, -174611.0 / 330};
  VecD inverse = 1 / x, z = inverse * inverse;
  VecD far = v_fma(z, v_fma(inverse, v_polynomial(z, kSeries), VecD{} + 0.5), inverse);
  auto below = x < 1;
  VecD u = v_at_most(below ? x : x - 1, 7.0);
  VecD near = v_piecewise(u, GammaPieces::trigamma);
  near = below ? near + z : near;
  return x < kAsymptotic ? near : far;
}
// pi^2 / sin^2(pi x) - trigamma(1 - x) for negative x.
inline VecD v_trigamma(VecD x) {
  auto negative = x < 0;
  if (LAMELLA_LIKELY(!v_any(negative))) return v_trigamma_positive(x);
  Quadrant<VecD> q = v_reduce_pi(x);
  VecD sine = 3.14159265358979323846 / v_sin_of(q, q.n);
  VecD value = v_trigamma_positive(negative ? 1 - x : x);
  VecD result = negative ? v_fma(sine, sine, -value) : value;
  return negative && v_rint(x) == x ? VecD{} + kInf<double> : result;
}
#define LAMELLA_BY_DOUBLE(name)                                \
  inline VecF v_##name(VecF x) {                               \
    return v_by_double(x, [](VecD a) { return v_##name(a); }); \
  }
LAMELLA_BY_DOUBLE(lgamma)
LAMELLA_BY_DOUBLE(digamma)
LAMELLA_BY_DOUBLE(trigamma)

// ---- Modified Bessel functions of the first kind ----

// exp(-x) I(x) for x >= 0. Beyond the tables by the asymptotic series (Handbook of Mathematical
// Functions, 9.7.1), with 1 / sqrt(2 pi) in its coefficients.
template <int order, class V>
inline Twice<V> v_bessel_scaled(V x) {
  using T = ElementOf<V>;
  constexpr T kEnd = sizeof(T) == 4 ? T(48) : T(180);
  V cut = v_at_most(x, kEnd);
  Twice<V> near;
  if constexpr (order == 0) {
    near = v_piecewise_twice(cut, Pieces<T>::i0e);
  } else {
    Twice<V> over_x = v_piecewise_twice(cut, Pieces<T>::i1e);
    near = v_product(cut, over_x.high);
    near.low = v_fma(cut, over_x.low, near.low);
  }
  auto far = x > kEnd;
  if (LAMELLA_LIKELY(!v_any(far))) return near;
  constexpr double c = 0.39894228040143267794;
  static constexpr T kSeries[2][8] = {
      {T(c), T(c / 8), T(c * 9 / 128), T(c * 75 / 1024), T(c * 3675 / 32768), T(c * 59535 / 262144),
       T(c * 2401245 / 4194304), T(c * 57972915 / 33554432)},
      {T(c), T(-c * 3 / 8), T(-c * 15 / 128), T(-c * 105 / 1024), T(-c * 4725 / 32768),
       T(-c * 72765 / 262144), T(-c * 2837835 / 4194304), T(-c * 66891825 / 33554432)}};
  V series = v_polynomial(1 / x, kSeries[order]) / v_sqrt(x);
  return {far ? series : near.high, far ? V{} : near.low};
}
template <class V>
inline V v_i0e(V x) {
  return v_bessel_scaled<0>(v_abs(x)).high;
}
template <class V>
inline V v_i1e(V x) {
  Twice<V> scaled = v_bessel_scaled<1>(v_abs(x));
  return v_copysign(scaled.high + scaled.low, x);
}
template <class V>
inline V v_i0(V x) {
  using T = ElementOf<V>;
  V size = v_at_most(v_abs(x), sizeof(T) == 4 ? T(100) : T(720));
  return v_exp_times(size, -V{}, v_bessel_scaled<0>(size));
}
template <class V>
inline V v_i1(V x) {
  using T = ElementOf<V>;
  V size = v_at_most(v_abs(x), sizeof(T) == 4 ? T(100) : T(720));
  return v_copysign(v_exp_times(size, -V{}, v_bessel_scaled<1>(size)), x);
}

// ---- Products with logarithms, and others ----

template <class V>
inline V v_entr(V x) {
  using T = ElementOf<V>;
  V result = -x * v_log(x);
  return x < 0 ? V{} - kInf<T> : x == 0 ? V{} : result;
}
template <class V>
inline V v_xlogy(V x, V y) {
  V result = x * v_log(y);
  return x == 0 && !v_is_nan(y) ? V{} : result;
}
template <class V>
inline V v_xlog1py(V x, V y) {
  V result = x * v_log1p(y);
  return x == 0 && !v_is_nan(y) ? V{} : result;
}
// The neighbour of x towards y, among numbers without the last `dropped` bits; those whose absolute
// value is at most `end` are `spacing` apart.
template <class V>
inline V v_nextafter(V x, V y, int dropped = 0, ElementOf<V> spacing = 0, ElementOf<V> end = -1) {
  using I = IntOf<V>;
  I bits = v_bits(x), step = (I{} + 1) << dropped;
  // Away from 0 the bits of a number count up for either sign.
  auto away = (x < y) == (x > 0);
  V moved = v_from_bits<V>(away ? bits + step : bits - step);
  V result = x == 0 ? v_from_bits<V>(v_sign(y) | step) : moved;
  result = v_abs(x) <= end ? (x < y ? x + spacing : x - spacing) : result;
  result = x == y ? y : result;
  return v_is_nan(x) || v_is_nan(y) ? x + y : result;
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
