// Exponentials, hyperbolic functions and the logistic function in vectors.
#pragma once
#include "lamella/kernels/cpu/simd/vector_kinds.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {

// Cody and Waite's reduction: x = n log(2) + r, with log(2) in two parts of which the first has
// zeros enough that n times it is exact (W. Cody, W. Waite, Software Manual for the Elementary
// Functions, 1980).
template <class T>
inline constexpr T kLog2Upper = sizeof(T) == 4 ? T(0x1.62e4p-1) : T(0x1.62e42fefa3p-1);
template <class T>
inline constexpr T kLog2Lower =
    sizeof(T) == 4 ? T(0x1.7f7d1cf79abcap-20) : T(0x1.3de6af278ece6p-42);
template <class T>
inline constexpr T kLog2E = T(1.44269504088896340736);

template <class V>
struct Exponent {
  Rounded<V> n;
  V minus_one;  // exp(r) - 1
};
// exp(x + low) for a small `low`. Callers may clamp x to the range where exp is finite and not 0,
// as v_exp does.
template <class V>
inline Exponent<V> v_exp_parts(V x, V low) {
  using T = ElementOf<V>;
  Rounded<V> n = v_whole_of_shifted(v_fma(x, kLog2E<T>, kRounder<T>));
  V r = v_fma(n.value, V{} - kLog2Upper<T>, x);
  r = v_fma(n.value, V{} - kLog2Lower<T>, r) + low;
  return {n, v_fma(r * r, v_polynomial(r, Coefficients<T>::exp), r)};
}
template <class T>
inline constexpr T kMostExp = sizeof(T) == 4 ? T(90) : T(710);
template <class T>
inline constexpr T kLeastExp = sizeof(T) == 4 ? T(-105) : T(-746);
template <class V>
inline V v_exp(V x, V low) {
  using T = ElementOf<V>;
  Exponent<V> e = v_exp_parts(v_at_most(v_at_least(x, kLeastExp<T>), kMostExp<T>), low);
  return v_ldexp(1 + e.minus_one, e.n);
}
// exp(x + low) factor, without overflow or underflow in between, for |x| below 2^12.
template <class V>
inline V v_exp_times(V x, V low, Twice<V> factor) {
  Exponent<V> e = v_exp_parts(x, low);
  return v_ldexp(factor.high + v_fma(e.minus_one, factor.high, factor.low), e.n);
}
template <class V>
inline V v_exp_times(V x, V low, V factor) {
  Exponent<V> e = v_exp_parts(x, low);
  return v_ldexp(v_fma(e.minus_one, factor, factor), e.n);
}
template <class V>
inline V v_exp(V x) {
  return v_exp(x, -V{});  // which the compiler leaves out
}
template <class V>
inline V v_exp2(V x) {
  using T = ElementOf<V>;
  constexpr T kMost = sizeof(T) == 4 ? 130 : 1030, kLeast = sizeof(T) == 4 ? -152 : -1080;
  x = v_at_most(v_at_least(x, kLeast), kMost);
  Rounded<V> n = v_round(x);
  V r = x - n.value;
  return v_ldexp(v_fma(r, v_polynomial(r, Coefficients<T>::exp2), T(1)), n);
}
// 2^n (1 + m) - 1 = 2 (2^(n - 1) m + (2^(n - 1) - 1/2)), which overflows where the result does.
template <class V>
inline V v_expm1(V x) {
  using T = ElementOf<V>;
  constexpr T kLeast = sizeof(T) == 4 ? -20 : -40, kMost = sizeof(T) == 4 ? T(89) : T(709.9);
  Exponent<V> e = v_exp_parts(v_at_most(v_at_least(x, kLeast), kMost), -V{});
  V half = v_power_of_two<V>(e.n.whole - 1);
  return v_copysign(2 * v_fma(half, e.minus_one, half - T(0.5)), x);  // -0 stays
}

// exp(|x|) / 2, which overflows where sinh and cosh do.
template <class V>
inline V v_half_exp(V size) {
  using T = ElementOf<V>;
  Exponent<V> e = v_exp_parts(v_at_most(size, sizeof(T) == 4 ? T(89.5) : T(710.6)), -V{});
  V quarter = v_power_of_two<V>(e.n.whole - 2);
  return 2 * v_fma(quarter, e.minus_one, quarter);
}
template <class V>
inline V v_cosh(V x) {
  V half = v_half_exp(v_abs(x));
  return half + ElementOf<V>(0.25) / half;
}
template <class V>
inline V v_sinh(V x) {
  using T = ElementOf<V>;
  V half = v_half_exp(v_abs(x)), square = x * x;
  V small = v_fma(x * square, v_polynomial(square, Coefficients<T>::sinh), x);
  return v_select(v_abs(x) < 1, small, v_copysign(half - T(0.25) / half, x));
}
// float32 in pieces. float64 with e = exp(-2 |x|): (1 - e) / (1 + e) near 0, where 1 - e comes from
// exp(r) - 1, and else 1 - 2 e / (1 + e), in which the quotient is small beside 1.
template <class V>
inline V v_tanh(V x) {
  using T = ElementOf<V>;
  V size = v_abs(x);
  if constexpr (sizeof(T) == 4) {
    return v_copysign(v_piecewise(v_at_most(size, 9.2f), Pieces<T>::tanh), x);
  } else {
    Exponent<V> e = v_exp_parts(v_at_least(size * -2, T(-40)), -V{});
    V scale = v_power_of_two<V>(e.n.whole);
    V minus = v_fma(scale, e.minus_one, scale - 1);
    auto large = size > T(0.55);
    V divisor = minus + 2, rest = minus - (divisor - 2);
    V quotient = v_select(large, 2 * v_fma(scale, e.minus_one, scale), minus) / divisor;
    quotient = v_fma(quotient * rest, T(-0.62), quotient);  // 1 / divisor is within 25 %
    return v_copysign(v_select(large, 1 - quotient, quotient), x);
  }
}
// 1 / (1 + e) or e / (1 + e), with e = exp(-|x|); of x + low, for a small `low`, of which the
// argument is that of -|x|. What rounding took from e and 1 + e is given back to the quotient.
template <class V>
inline V v_sigmoid_of(V x, V low) {
  using T = ElementOf<V>;
  V size = v_from_bits<V>(v_bits(x) | kSignBit<V>);
  Exponent<V> parts = v_exp_parts(v_at_least(size, kLeastExp<T>), low);
  V scale = v_ldexp(V{} + 1, parts.n);
  V e = v_fma(scale, parts.minus_one, scale), e_low = v_fma(scale, parts.minus_one, scale - e);
  Twice<V> divisor = v_fast_sum(V{} + 1, e);
  auto negative = x < 0;
  V quotient = v_select(negative, e, V{} + 1) / divisor.high;
  V rest = v_fma(-quotient, divisor.low + e_low, v_select(negative, e_low, V{}));
  return v_fma(rest, v_select(negative, 1 - quotient, quotient), quotient);
}
template <class V>
inline V v_sigmoid(V x, V low) {
  return v_sigmoid_of(x, v_flip(low, v_sign(x) ^ kSignBit<V>));
}
// float32's quotient is within 2 units in the last place without that.
template <class V>
inline V v_sigmoid(V x) {
  if constexpr (sizeof(ElementOf<V>) == 4) {
    V e = v_exp(v_from_bits<V>(v_bits(x) | kSignBit<V>));
    return v_select(x < 0, e, V{} + 1) / (1 + e);
  } else {
    return v_sigmoid_of(x, -V{});
  }
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
