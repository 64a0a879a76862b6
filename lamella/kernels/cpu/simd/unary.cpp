// Unary operators without elementary functions: signs, rounding, classification, square roots.
#include "lamella/kernels/cpu/loops.h"
#include "lamella/kernels/cpu/simd/vec.h"
#include "lamella/kernels/cpu/wide_types.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

template <class T>
inline constexpr bool is_float = std::is_floating_point_v<T>;
inline float root(float x) { return __builtin_sqrtf(x); }
inline double root(double x) { return __builtin_sqrt(x); }
inline double size_of(const complex<double>& z) { return lamella::abs(z); }
// The squares of float32 are exact in double precision, and do not overflow.
inline float size_of(const complex<float>& z) {
  const double x = z.real(), y = z.imag();
  const auto size = static_cast<float>(__builtin_sqrt(x * x + y * y));
  const bool is_infinite =
      (__builtin_fabs(x) == __builtin_huge_val()) | (__builtin_fabs(y) == __builtin_huge_val());
  return is_infinite ? __builtin_huge_valf() : size;
}

template <class T>
struct Neg {
  explicit Neg(const void*) {}
  T operator()(T a) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(0 - static_cast<uint64_t>(a));
    } else {
      return -a;
    }
  }
};
template <class T>
struct Abs {
  explicit Abs(const void*) {}
  auto operator()(T a) const {
    if constexpr (is_complex_type_v<T>) {
      return size_of(a);
    } else if constexpr (std::is_same_v<T, float>) {
      return __builtin_fabsf(a);
    } else if constexpr (std::is_same_v<T, double>) {
      return __builtin_fabs(a);
    } else {
      return a < T(0) ? static_cast<T>(0 - static_cast<uint64_t>(a)) : a;
    }
  }
};
template <class T>
struct Sign {
  explicit Sign(const void*) {}
  T operator()(T a) const {
    if constexpr (is_complex_type_v<T>) {
      auto size = size_of(a);
      return size == 0 ? T(0) : T(a.real() / size, a.imag() / size);
    } else if constexpr (std::is_same_v<T, bool>) {
      return a;
    } else {
      return static_cast<T>((T(0) < a) - (a < T(0)));
    }
  }
};
LAMELLA_OP1(Reciprocal, T(1) / a)
LAMELLA_OP1(Sqrt, root(a))
LAMELLA_OP1(Rsqrt, T(1) / root(a))

#define LAMELLA_ROUNDING(Name, fn)              \
  template <class T>                            \
  struct Name {                                 \
    explicit Name(const void*) {}               \
    T operator()(T a) const {                   \
      if constexpr (std::is_same_v<T, float>) { \
        return __builtin_##fn##f(a);            \
      } else if constexpr (is_float<T>) {       \
        return __builtin_##fn(a);               \
      } else {                                  \
        return a;                               \
      }                                         \
    }                                           \
  };
LAMELLA_ROUNDING(Ceil, ceil)
LAMELLA_ROUNDING(Floor, floor)
LAMELLA_ROUNDING(Trunc, trunc)
LAMELLA_ROUNDING(Round, rint)
LAMELLA_OP1(Frac, a - Trunc<T>(nullptr)(a))
// Parameters: 10 to the number of decimals, and whether to divide by it.
template <class T>
struct RoundDecimals {
  T power, negative;
  explicit RoundDecimals(const void* p) : power(param<T>(p, 0)), negative(param<T>(p, 1)) {}
  T operator()(T a) const {
    const Round<T> round(nullptr);
    return negative != 0 ? round(a / power) * power : round(a * power) / power;
  }
};

// Classification by the bits of the exponent, independent of the compiler's assumptions about NaN.
template <class T>
constexpr T kInfinity = __builtin_huge_val();
template <class T>
struct IsNan {
  explicit IsNan(const void*) {}
  bool operator()(T a) const {
    if constexpr (is_complex_type_v<T>) {
      return a.real() != a.real() || a.imag() != a.imag();
    } else {
      return v_is_nan(a);
    }
  }
};
template <class T>
struct IsInf {
  explicit IsInf(const void*) {}
  bool operator()(T a) const {
    if constexpr (is_complex_type_v<T>) {
      IsInf<typename T::value_type> part(nullptr);
      return part(a.real()) | part(a.imag());
    } else if constexpr (is_float<T>) {
      return (a == kInfinity<T>) | (a == -kInfinity<T>);
    } else {
      return false;
    }
  }
};
template <class T>
struct IsFinite {
  explicit IsFinite(const void*) {}
  bool operator()(T a) const {
    if constexpr (is_complex_type_v<T>) {
      IsFinite<typename T::value_type> part(nullptr);
      return part(a.real()) & part(a.imag());
    } else if constexpr (is_float<T>) {
      return (a - a) == T(0);
    } else {
      return true;
    }
  }
};
template <class T>
struct IsPosInf {
  explicit IsPosInf(const void*) {}
  bool operator()(T a) const {
    if constexpr (is_float<T>) {
      return a == kInfinity<T>;
    } else {
      return false;
    }
  }
};
template <class T>
struct IsNegInf {
  explicit IsNegInf(const void*) {}
  bool operator()(T a) const {
    if constexpr (is_float<T>) {
      return a == -kInfinity<T>;
    } else {
      return false;
    }
  }
};
template <class T>
struct SignBit {
  explicit SignBit(const void*) {}
  bool operator()(T a) const {
    if constexpr (std::is_same_v<T, float>) {
      return __builtin_bit_cast(int32_t, a) < 0;
    } else if constexpr (std::is_same_v<T, double>) {
      return __builtin_bit_cast(int64_t, a) < 0;
    } else {
      return a < T(0);
    }
  }
};
// Parameters: the replacements of NaN, +infinity and -infinity.
template <class T>
struct NanToNum {
  T nan, most, least;
  explicit NanToNum(const void* p)
      : nan(param<T>(p, 0)), most(param<T>(p, 1)), least(param<T>(p, 2)) {}
  T operator()(T a) const {
    if constexpr (is_complex_type_v<T>) {
      using R = typename T::value_type;
      auto part = [&](R x) {
        return v_is_nan(x)          ? nan.real()
               : x == kInfinity<R>  ? most.real()
               : x == -kInfinity<R> ? least.real()
                                    : x;
      };
      return T(part(a.real()), part(a.imag()));
    } else if constexpr (is_float<T>) {
      return v_is_nan(a) ? nan : a == kInfinity<T> ? most : a == -kInfinity<T> ? least : a;
    } else {
      return a;
    }
  }
};
LAMELLA_OP1(Conj, T(a.real(), -a.imag()))

template <class T>
struct LeakyRelu {
  T slope;
  explicit LeakyRelu(const void* p) : slope(param<T>(p, 0)) {}
  T operator()(T a) const { return a > T(0) ? a : a * slope; }
};
template <class T>
struct Threshold {
  T threshold, value;
  explicit Threshold(const void* p) : threshold(param<T>(p, 0)), value(param<T>(p, 1)) {}
  T operator()(T a) const { return a <= threshold ? value : a; }
};
template <class T>
struct ClampScalar {
  T least, most;
  explicit ClampScalar(const void* p) : least(param<T>(p, 0)), most(param<T>(p, 1)) {}
  T operator()(T a) const {
    T low = a < least ? least : a;  // NaN stays
    return low > most ? most : low;
  }
};
template <class T>
struct ClampMinScalar {
  T least;
  explicit ClampMinScalar(const void* p) : least(param<T>(p, 0)) {}
  T operator()(T a) const { return a < least ? least : a; }
};
template <class T>
struct ClampMaxScalar {
  T most;
  explicit ClampMaxScalar(const void* p) : most(param<T>(p, 0)) {}
  T operator()(T a) const { return a > most ? most : a; }
};
template <class T>
inline T clamp06(T a) {
  T low = a < T(0) ? T(0) : a;
  return low > T(6) ? T(6) : low;
}
LAMELLA_OP1(Hardswish, a* clamp06<T>(a + T(3)) / T(6))
LAMELLA_OP1(Hardsigmoid, clamp06<T>(a + T(3)) / T(6))

}  // namespace

template <>
inline constexpr bool kResultIsExact<Neg<float>> = true;
template <>
inline constexpr bool kResultIsExact<Abs<float>> = true;
}  // namespace CPU_CAPABILITY

using RoundTypes = JoinTypes<RealTypes, UnsignedTypes>;
using ClassTypes = JoinTypes<AllTypes, UnsignedTypes>;
using SignTypes = JoinTypes<RealBoolTypes, UnsignedTypes>;
LAMELLA_PLAIN1(neg, Neg, WideNumberTypes);
LAMELLA_PLAIN1(sign, Sign, WideRealBoolTypes);
LAMELLA_PLAIN1(sgn, Sign, WideAllTypes);
LAMELLA_PLAIN1(reciprocal, Reciprocal, FloatComplexTypes);
LAMELLA_OTHER_LOOPS(sqrt);
LAMELLA_POINTWISE(sqrt, plain_table<Sqrt, 1>("sqrt", 0, FloatTypes(), sqrt_others));
LAMELLA_OTHER_LOOPS(rsqrt);
LAMELLA_POINTWISE(rsqrt, plain_table<Rsqrt, 1>("rsqrt", 0, FloatTypes(), rsqrt_others));
LAMELLA_PLAIN1(ceil, Ceil, RoundTypes);
LAMELLA_PLAIN1(floor, Floor, RoundTypes);
LAMELLA_PLAIN1(trunc, Trunc, RoundTypes);
LAMELLA_PLAIN1(round, Round, RoundTypes);
LAMELLA_PLAIN1(frac, Frac, FloatTypes);
LAMELLA_POINTWISE(round_decimals, plain_table<RoundDecimals, 1>("round", 2, FloatTypes()));
LAMELLA_PLAIN1(isnan, IsNan, ClassTypes);
LAMELLA_PLAIN1(isinf, IsInf, ClassTypes);
LAMELLA_PLAIN1(isfinite, IsFinite, ClassTypes);
LAMELLA_PLAIN1(isposinf, IsPosInf, SignTypes);
LAMELLA_PLAIN1(isneginf, IsNegInf, SignTypes);
LAMELLA_PLAIN1(signbit, SignBit, SignTypes);
LAMELLA_POINTWISE(nan_to_num, plain_table<NanToNum, 1>("nan_to_num", 3, ClassTypes()));
LAMELLA_PLAIN1(conj_physical, Conj, ComplexTypes);
LAMELLA_POINTWISE(leaky_relu, plain_table<LeakyRelu, 1>("leaky_relu", 1, FloatTypes()));
LAMELLA_POINTWISE(threshold, plain_table<Threshold, 1>("threshold", 2, RealTypes()));
LAMELLA_POINTWISE(clamp_scalar, plain_table<ClampScalar, 1>("clamp", 2, WideRealTypes()));
LAMELLA_POINTWISE(clamp_min_scalar,
                  plain_table<ClampMinScalar, 1>("clamp_min", 1, WideRealTypes()));
LAMELLA_POINTWISE(clamp_max_scalar,
                  plain_table<ClampMaxScalar, 1>("clamp_max", 1, WideRealTypes()));
LAMELLA_PLAIN1(hardswish, Hardswish, FloatTypes);
LAMELLA_PLAIN1(hardsigmoid, Hardsigmoid, FloatTypes);
// The last type, which is complex, determines how the table stores results.
using SizeTypes = JoinTypes<WidestUnsigned, NumberTypes>;
// The result of a complex number is real: a table of its own kind for it is chosen by the type.
LAMELLA_POINTWISE(abs, plain_table<Abs, 1>("abs", 0, SizeTypes()));

}  // namespace lamella::native
