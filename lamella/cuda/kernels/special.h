// Special functions, powers and remainders: those of kernels/cpu/simd, for one number.
#pragma once
#include "lamella/cuda/kernels/elementary.h"
#include "lamella/kernels/cpu/simd/special.h"

namespace lamella::cuda {

LAMELLA_LANES1(Erf, v_erf(a))
LAMELLA_LANES1(Erfc, v_erfc(a))
LAMELLA_LANES1(Erfcx, v_erfcx(a))
LAMELLA_LANES1(Erfinv, v_erfinv(a))
LAMELLA_LANES1(Ndtri, v_ndtri(a))
LAMELLA_LANES1(LogNdtr, v_log_ndtr(a))
LAMELLA_LANES1(Lgamma, v_lgamma(a))
LAMELLA_LANES1(Digamma, v_digamma(a))
LAMELLA_LANES1(Trigamma, v_trigamma(a))
LAMELLA_LANES1(I0, v_i0(a))
LAMELLA_LANES1(I0e, v_i0e(a))
LAMELLA_LANES1(I1, v_i1(a))
LAMELLA_LANES1(I1e, v_i1e(a))
LAMELLA_LANES1(Entr, v_entr(a))
LAMELLA_LANES2(Xlogy, v_xlogy(a, b))
LAMELLA_LANES2(Xlog1py, v_xlog1py(a, b))
LAMELLA_LANES1(Sinc, v_sinc(a))
// Scalar: the bound to which the input is clamped; negative: none.
LAMELLA_LANES1(Logit, v_logit(s(0) >= 0 ? v_at_most(v_at_least(a, s(0)), 1 - s(0)) : a))

// Scalar: 1 for neighbours among float16, 2 among bfloat16.
template <class T>
struct NextAfter {
  static constexpr bool kIsLong = true;
  int dropped;
  T spacing, end;
  LAMELLA_DEVICE explicit NextAfter(const PointwiseParameters& p) {
    const int small = static_cast<int>(*reinterpret_cast<const T*>(p.scalars[0]));
    dropped = small == 1 ? 13 : small == 2 ? 16 : 0;
    spacing = small == 1 ? T(0x1p-24) : T(0);
    end = small == 1 ? T(0x1p-14) : T(-1);
  }
  LAMELLA_DEVICE T operator()(T x, T y) const {
    using namespace native;
    Lane<T> a(x), b(y);
    // The numbers next to infinity are those next to 2^16, which follows the largest float16.
    if (spacing > 0 && v_abs(a) == kInf<T> && a != b) a = v_copysign(Lane<T>(65536), a);
    return v_nextafter(a, b, dropped, spacing, end).v;
  }
};

// ---- Integers beside floating point ----

template <class T>
LAMELLA_DEVICE T whole_power(T a, T b) {
  if (std::is_signed_v<T> && b < T(0)) {
    if (a == T(1)) return T(1);
    return a == static_cast<T>(-1) ? static_cast<T>(b % 2 == 0 ? 1 : -1) : T(0);
  }
  using U = std::make_unsigned_t<T>;
  U result = 1, base = static_cast<U>(a);
  for (U e = static_cast<U>(b); e != 0; e >>= 1, base *= base) {
    if (e & 1) result *= base;
  }
  return static_cast<T>(result);
}
template <class T>
LAMELLA_DEVICE T floor_rest(T a, T b) {
  const T rest = whole_rest(a, b);
  return is_apart(rest, b) ? static_cast<T>(rest + b) : rest;
}
template <class T>
LAMELLA_DEVICE T floor_quotient(T a, T b) {
  const T q = whole_quotient(a, b);
  return is_apart(whole_rest(a, b), b) ? static_cast<T>(q - 1) : q;
}
#define LAMELLA_BOTH(Name, of_whole, of_float)                  \
  template <class T>                                            \
  struct Name {                                                 \
    static constexpr bool kIsLong = true;                       \
    LAMELLA_DEVICE explicit Name(const PointwiseParameters&) {} \
    LAMELLA_DEVICE T operator()(T a, T b) const {               \
      if constexpr (is_whole<T>) {                              \
        return of_whole(a, b);                                  \
      } else {                                                  \
        return native::of_float(Lane<T>(a), Lane<T>(b)).v;      \
      }                                                         \
    }                                                           \
  };
LAMELLA_BOTH(Pow, whole_power, v_pow)
LAMELLA_BOTH(Fmod, whole_rest, v_fmod)
LAMELLA_BOTH(Remainder, floor_rest, v_remainder)
LAMELLA_BOTH(DivFloor, floor_quotient, v_floor_divide)
LAMELLA_BOTH(FloorQuotient, floor_quotient, v_floor_quotient)

}  // namespace lamella::cuda
