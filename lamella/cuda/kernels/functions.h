// The functions of pointwise kernels: arithmetic, comparisons and logic. Each equals the CPU's of
// kernels/cpu/simd.
#pragma once
#include <cmath>

#include "lamella/cuda/kernels/pointwise.h"

namespace lamella::cuda {

// Integers wrap.
template <class T>
using Wrap = std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>,
                                std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>, T>;

#define LAMELLA_FUNCTION(Name, arguments, ...)                             \
  template <class T>                                                       \
  struct Name {                                                            \
    LAMELLA_DEVICE explicit Name(const PointwiseParameters&) {}            \
    LAMELLA_DEVICE auto operator() arguments const { return __VA_ARGS__; } \
  };
#define LAMELLA_FUNCTION1(Name, ...) LAMELLA_FUNCTION(Name, (T a), __VA_ARGS__)
#define LAMELLA_FUNCTION2(Name, ...) LAMELLA_FUNCTION(Name, (T a, T b), __VA_ARGS__)
// With numbers of the operator, s(0)...
#define LAMELLA_SCALED(Name, arguments, ...)                                              \
  template <class T>                                                                      \
  struct Name {                                                                           \
    const PointwiseParameters& p;                                                         \
    LAMELLA_DEVICE explicit Name(const PointwiseParameters& given) : p(given) {}          \
    LAMELLA_DEVICE T s(int i) const { return *reinterpret_cast<const T*>(p.scalars[i]); } \
    LAMELLA_DEVICE auto operator() arguments const { return __VA_ARGS__; }                \
  };

template <class T>
inline constexpr bool is_whole = std::is_integral_v<T>;
template <class T>
inline constexpr bool is_float = std::is_floating_point_v<T>;

template <class T>
struct Copy {
  static constexpr bool kReadsAny = true;
  LAMELLA_DEVICE explicit Copy(const PointwiseParameters&) {}
  LAMELLA_DEVICE T operator()(T a) const { return a; }
};

// ---- Complex numbers ----

// As the CPU's, with one rounding of a product and a sum.
template <class T>
LAMELLA_DEVICE complex<T> product(complex<T> a, complex<T> b) {
  return {std::fma(a.real(), b.real(), -(a.imag() * b.imag())),
          std::fma(a.real(), b.imag(), a.imag() * b.real())};
}
template <class T>
LAMELLA_DEVICE complex<T> quotient(complex<T> a, complex<T> b) {
  const T re = b.real() < 0 ? -b.real() : b.real(), im = b.imag() < 0 ? -b.imag() : b.imag();
  const bool is_real = re >= im;
  if (re == 0 && im == 0) {  // of either sign
    const T zero = re * re;
    return {a.real() / zero, a.imag() / zero};
  }
  const T large = is_real ? b.real() : b.imag(), small = is_real ? b.imag() : b.real();
  const T ratio = small / large, scale = 1 / std::fma(small, ratio, large);
  if (is_real) {
    return {std::fma(a.imag(), ratio, a.real()) * scale,
            std::fma(-a.real(), ratio, a.imag()) * scale};
  }
  return {std::fma(a.real(), ratio, a.imag()) * scale,
          std::fma(a.imag(), ratio, -a.real()) * scale};
}
LAMELLA_DEVICE float root(float a) {
#ifdef __CUDACC__
  return __fsqrt_rn(a);
#else
  return __builtin_sqrtf(a);
#endif
}
LAMELLA_DEVICE double root(double a) {
#ifdef __CUDACC__
  return __dsqrt_rn(a);
#else
  return __builtin_sqrt(a);
#endif
}
template <class T>
LAMELLA_DEVICE T infinity() {
  return static_cast<T>(__builtin_huge_valf());
}
// The magnitude; squares of float are exact in double.
LAMELLA_DEVICE float size_of(complex<float> a) {
  const float re = std::fabs(a.real()), im = std::fabs(a.imag());
  if (re == infinity<float>() || im == infinity<float>()) return infinity<float>();
  const double x = re, y = im;
  return static_cast<float>(root(x * x + y * y));
}

// ---- Arithmetic ----

LAMELLA_FUNCTION2(Add, static_cast<T>(Wrap<T>(a) + Wrap<T>(b)))
LAMELLA_FUNCTION2(Sub, static_cast<T>(Wrap<T>(a) - Wrap<T>(b)))
LAMELLA_SCALED(AddAlpha, (T a, T b), static_cast<T>(Wrap<T>(a) + Wrap<T>(s(0)) * Wrap<T>(b)))
LAMELLA_SCALED(AddProduct, (T a, T b, T c),
               static_cast<T>(Wrap<T>(a) + Wrap<T>(s(0)) * Wrap<T>(b) * Wrap<T>(c)))
LAMELLA_SCALED(AddQuotient, (T a, T b, T c), a + s(0) * b / c)
LAMELLA_FUNCTION2(Maximum, (a > b || a != a) ? a : b)
LAMELLA_FUNCTION2(Minimum, (a < b || a != a) ? a : b)
LAMELLA_FUNCTION2(Fmax, (a > b || b != b) ? a : b)
LAMELLA_FUNCTION2(Fmin, (a < b || b != b) ? a : b)
LAMELLA_FUNCTION1(Square, a* a)
LAMELLA_FUNCTION1(Cube, a* a* a)
LAMELLA_FUNCTION1(InverseSquare, T(1) / (a * a))
LAMELLA_FUNCTION1(Reciprocal, T(1) / a)
LAMELLA_FUNCTION1(Sqrt, root(a))
LAMELLA_FUNCTION1(Rsqrt, T(1) / root(a))
LAMELLA_FUNCTION1(Conj, T(a.real(), -a.imag()))
LAMELLA_FUNCTION2(CopySign, std::copysign(a, b))
LAMELLA_FUNCTION2(Heaviside, a == T(0) ? b : static_cast<T>(a > T(0)))

template <class T>
LAMELLA_DEVICE T multiplied(T a, T b) {
  if constexpr (is_complex_type_v<T>) {
    return product(a, b);
  } else {
    return static_cast<T>(Wrap<T>(a) * Wrap<T>(b));
  }
}
LAMELLA_FUNCTION2(Mul, multiplied(a, b))
template <class T>
LAMELLA_DEVICE T divided(T a, T b) {
  if constexpr (is_complex_type_v<T>) {
    return quotient(a, b);
  } else {
    return a / b;
  }
}
LAMELLA_FUNCTION2(Div, divided(a, b))
template <class T>
LAMELLA_DEVICE T negated(T a) {
  if constexpr (is_whole<T>) {
    return static_cast<T>(0 - static_cast<uint64_t>(a));
  } else {
    return -a;
  }
}
LAMELLA_FUNCTION1(Neg, negated(a))
template <class T>
LAMELLA_DEVICE auto magnitude(T a) {
  if constexpr (is_complex_type_v<T>) {
    return size_of(a);
  } else if constexpr (is_whole<T>) {
    return a < T(0) ? negated(a) : a;
  } else {
    return std::fabs(a);
  }
}
LAMELLA_FUNCTION1(Abs, magnitude(a))
template <class T>
LAMELLA_DEVICE T sign_of(T a) {
  if constexpr (is_complex_type_v<T>) {
    const auto size = size_of(a);
    return size == 0 ? T(0) : T(a.real() / size, a.imag() / size);
  } else {
    return static_cast<T>((T(0) < a) - (a < T(0)));
  }
}
LAMELLA_FUNCTION1(Sign, sign_of(a))

// ---- Division of integers ----

// The most negative number divided by -1 wraps. A divisor of 0, which the CPU refuses before it
// computes, gives the quotient -1 and the remainder `a`.
template <class T>
LAMELLA_DEVICE bool is_minus_one(T b) {
  return std::is_signed_v<T> && b == static_cast<T>(-1);
}
template <class T>
LAMELLA_DEVICE T whole_quotient(T a, T b) {
  return b == 0 ? static_cast<T>(-1) : is_minus_one(b) ? negated(a) : static_cast<T>(a / b);
}
template <class T>
LAMELLA_DEVICE T whole_rest(T a, T b) {
  return b == 0 ? a : is_minus_one(b) ? T(0) : static_cast<T>(a % b);
}
// Whether a rest is to be moved to the divisor's sign.
template <class T>
LAMELLA_DEVICE bool is_apart(T rest, T b) {
  return std::is_signed_v<T> && b != 0 && rest != 0 && (rest < 0) != (b < 0);
}
template <class T>
LAMELLA_DEVICE T cut_quotient(T a, T b) {
  if constexpr (is_whole<T>) {
    return whole_quotient(a, b);
  } else {
    return std::trunc(a / b);
  }
}
LAMELLA_FUNCTION2(DivTrunc, cut_quotient(a, b))

template <class T>
LAMELLA_DEVICE T divisor_of(T a, T b) {
  using U = std::make_unsigned_t<T>;
  U x = static_cast<U>(magnitude(a)), y = static_cast<U>(magnitude(b));
  while (y != 0) {
    const U rest = x % y;
    x = y;
    y = rest;
  }
  return static_cast<T>(x);
}
LAMELLA_FUNCTION2(Gcd, divisor_of(a, b))
template <class T>
LAMELLA_DEVICE T multiple_of(T a, T b) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  const T common = divisor_of(a, b);
  if (common == 0) return T(0);
  return static_cast<T>(magnitude(multiplied(static_cast<Wide>(a / common), static_cast<Wide>(b))));
}
LAMELLA_FUNCTION2(Lcm, multiple_of(a, b))

// ---- Comparisons, logic, bits ----

LAMELLA_FUNCTION2(Eq, a == b)
LAMELLA_FUNCTION2(Ne, !(a == b))
LAMELLA_FUNCTION2(Lt, a < b)
LAMELLA_FUNCTION2(Le, a <= b)
LAMELLA_FUNCTION2(Gt, a > b)
LAMELLA_FUNCTION2(Ge, a >= b)
LAMELLA_FUNCTION2(LogicalAnd, static_cast<bool>(a) && static_cast<bool>(b))
LAMELLA_FUNCTION2(LogicalOr, static_cast<bool>(a) || static_cast<bool>(b))
LAMELLA_FUNCTION2(LogicalXor, static_cast<bool>(a) != static_cast<bool>(b))
LAMELLA_FUNCTION1(LogicalNot, !static_cast<bool>(a))
LAMELLA_FUNCTION2(BitAnd, static_cast<T>(a& b))
LAMELLA_FUNCTION2(BitOr, static_cast<T>(a | b))
LAMELLA_FUNCTION2(BitXor, static_cast<T>(a ^ b))
LAMELLA_FUNCTION1(BitNot, static_cast<T>(~a))
template <class T>
struct Where {
  using First = bool;
  LAMELLA_DEVICE explicit Where(const PointwiseParameters&) {}
  LAMELLA_DEVICE T operator()(bool condition, T a, T b) const { return condition ? a : b; }
};
// This shifts narrower integers as well: storing them cuts off the bits beyond their width.
template <class T>
LAMELLA_DEVICE bool shifts_out(T by) {
  return by < T(0) || by >= static_cast<T>(sizeof(T) * 8);
}
LAMELLA_FUNCTION2(ShiftLeft, shifts_out(b)
                                 ? T(0)
                                 : static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << b))
LAMELLA_FUNCTION2(ShiftRight, shifts_out(b)
                                  ? static_cast<T>(std::is_signed_v<T>&& a < T(0) ? -1 : 0)
                                  : static_cast<T>(a >> b))

// ---- Classification ----

// Whether a test holds for either part, or for both.
#define LAMELLA_CLASS(Name, join, of_whole, ...)                \
  template <class T>                                            \
  struct Name {                                                 \
    LAMELLA_DEVICE explicit Name(const PointwiseParameters&) {} \
    template <class P>                                          \
    static LAMELLA_DEVICE bool holds(P a) {                     \
      if constexpr (is_float<P>) {                              \
        return __VA_ARGS__;                                     \
      } else {                                                  \
        return of_whole;                                        \
      }                                                         \
    }                                                           \
    LAMELLA_DEVICE bool operator()(T a) const {                 \
      if constexpr (is_complex_type_v<T>) {                     \
        return holds(a.real()) join holds(a.imag());            \
      } else {                                                  \
        return holds(a);                                        \
      }                                                         \
    }                                                           \
  };
LAMELLA_CLASS(IsNan, ||, false, a != a)
LAMELLA_CLASS(IsInf, ||, false, a == infinity<P>() || a == -infinity<P>())
LAMELLA_CLASS(IsFinite, &&, true, (a - a) == P(0))
LAMELLA_CLASS(IsPosInf, ||, false, a == infinity<P>())
LAMELLA_CLASS(IsNegInf, ||, false, a == -infinity<P>())
LAMELLA_CLASS(SignBit, ||, a < P(0), std::signbit(a))
#undef LAMELLA_CLASS

}  // namespace lamella::cuda
