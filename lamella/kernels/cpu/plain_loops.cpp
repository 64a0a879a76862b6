// Pointwise loops that gain nothing from wider vectors: integer division, powers of integers,
// special functions. Compiled once, for every capability.
#include <cmath>
#include <limits>

#include "lamella/kernels/cpu/loops.h"
#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {

void complex_pow_float(char* const* data, int64_t n, const void* params);
void complex_pow_double(char* const* data, int64_t n, const void* params);

namespace {

[[noreturn]] LAMELLA_COLD void throw_zero_division(const char* op) {
  throw Error(str(op, ": expected integers in 'other' other than zero, got 0"));
}
// The most negative number by -1 has no result; it wraps.
template <class T>
inline bool is_minus_one(T b) {
  return std::is_signed_v<T> && b == static_cast<T>(-1);
}
template <class T>
inline T negate(T a) {
  return static_cast<T>(0 - static_cast<uint64_t>(a));
}

// Cut off. What is decided for each element is computed without a branch, which random numbers
// would make the processor guess wrong.
template <class T>
inline T quotient(T a, T b) {
  T minus = -static_cast<T>(is_minus_one(b));
  T cut = static_cast<T>(a / (is_minus_one(b) ? T(1) : b));
  return static_cast<T>((static_cast<uint64_t>(cut) ^ static_cast<uint64_t>(minus)) -
                        static_cast<uint64_t>(minus));
}
// 1 if the rest of a division is not 0 and has another sign than the divisor, else 0.
template <class T>
inline T apart(T rest, T b) {
  return static_cast<T>((rest != 0) & ((rest ^ b) < 0));
}

template <class T>
struct IntDivTrunc {
  explicit IntDivTrunc(const void*) {}
  T operator()(T a, T b) const {
    if (LAMELLA_UNLIKELY(b == 0)) throw_zero_division("div");
    return quotient(a, b);
  }
};
// Rounded down, so that a = b * floor(a / b) + remainder(a, b).
template <class T>
struct DivFloor {
  explicit DivFloor(const void*) {}
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (LAMELLA_UNLIKELY(b == 0)) throw_zero_division("div");
      T q = quotient(a, b);
      T rest =
          static_cast<T>(a - static_cast<T>(static_cast<uint64_t>(q) * static_cast<uint64_t>(b)));
      return static_cast<T>(q - apart(rest, b));
    } else {
      if (LAMELLA_UNLIKELY(b == 0)) return a / b;
      T mod = std::fmod(a, b);
      T div = (a - mod) / b;
      if (mod != 0 && (b < 0) != (mod < 0)) div -= 1;
      if (div == 0) return std::copysign(T(0), a / b);
      // div is near an integer; take that one.
      T floor = std::floor(div);
      return div - floor > T(0.5) ? floor + 1 : floor;
    }
  }
};
// The sign of the divisor.
template <class T>
struct Remainder {
  explicit Remainder(const void*) {}
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (LAMELLA_UNLIKELY(b == 0)) throw_zero_division("remainder");
      T rest = static_cast<T>(a % (is_minus_one(b) ? T(1) : b));
      return static_cast<T>(rest + (b & -apart(rest, b)));
    } else {
      T mod = std::fmod(a, b);
      return (mod != 0 && (b < 0) != (mod < 0)) ? mod + b : mod;
    }
  }
};
// The sign of the dividend.
template <class T>
struct Fmod {
  explicit Fmod(const void*) {}
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (LAMELLA_UNLIKELY(b == 0)) throw_zero_division("fmod");
      return is_minus_one(b) ? T(0) : static_cast<T>(a % b);
    } else {
      return std::fmod(a, b);
    }
  }
};

template <class T>
struct IntPow {
  explicit IntPow(const void*) {}
  T operator()(T a, T b) const {
    if constexpr (std::is_signed_v<T>) {
      if (b < 0) {
        if (a == 1) return 1;
        return a == -1 ? (b % 2 == 0 ? T(1) : T(-1)) : T(0);
      }
    }
    uint64_t result = 1, base = static_cast<uint64_t>(a);
    for (auto e = static_cast<uint64_t>(b); e != 0; e >>= 1, base *= base) {
      if (e & 1) result *= base;
    }
    return static_cast<T>(result);
  }
};

// The neighbour of `a` towards `b` among the numbers of a small type.
template <class Small>
float neighbour(float a, float b) {
  if (a == b || a != a || b != b) return a == b ? b : a + b;
  Small at(a);
  if (a == 0) {
    at = Small(b < 0 ? -0.0f : 0.0f);
    ++at.x;
  } else {
    at.x = static_cast<typename Small::bits_type>((a < b) == (a > 0) ? at.x + 1 : at.x - 1);
  }
  return static_cast<float>(at);
}
template <class T>
struct NextAfter {
  explicit NextAfter(const void* params) : small(static_cast<int>(param<T>(params, 0))) {}
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, float>) {
      if (small == 1) return neighbour<Half>(a, b);
      if (small == 2) return neighbour<BFloat16>(a, b);
    }
    return std::nextafter(a, b);
  }
  int small;  // 1: of Half; 2: of BFloat16
};
LAMELLA_OP2(Xlogy, b != b ? b : a == 0 ? T(0) : static_cast<T>(a * std::log(b)))
template <class T>
struct Heaviside {
  explicit Heaviside(const void*) {}
  T operator()(T a, T b) const { return a == T(0) ? b : static_cast<T>(a > T(0)); }
};
template <class T>
inline T gcd_of(T a, T b) {
  auto size = [](T x) { return x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x); };
  uint64_t x = size(a), y = size(b);
  while (y != 0) {
    uint64_t r = x % y;
    x = y;
    y = r;
  }
  return static_cast<T>(x);
}
LAMELLA_OP2(Gcd, gcd_of(a, b))
template <class T>
struct Lcm {
  explicit Lcm(const void*) {}
  T operator()(T a, T b) const {
    T g = gcd_of(a, b);
    if (g == 0) return 0;
    auto product = static_cast<int64_t>(static_cast<uint64_t>(a / g) * static_cast<uint64_t>(b));
    return static_cast<T>(product < 0 ? negate(product) : product);
  }
};

// Parameters: 10 to the number of decimals, and whether to divide by it.
template <class T>
struct RoundDecimals {
  T power, negative;
  explicit RoundDecimals(const void* p) : power(param<T>(p, 0)), negative(param<T>(p, 1)) {}
  T operator()(T a) const {
    return negative != 0 ? std::nearbyint(a / power) * power : std::nearbyint(a * power) / power;
  }
};

template <class T>
struct Replace {  // by the parameter, whatever it was
  T value;
  explicit Replace(const void* p) : value(param<T>(p, 0)) {}
  T operator()(T) const { return value; }
};
template <class T>
struct Angle {
  explicit Angle(const void*) {}
  auto operator()(T a) const {
    if constexpr (is_complex_type_v<T>) {
      return std::atan2(a.imag(), a.real());
    } else {
      return a != a ? a : a < 0 ? T(3.14159265358979323846) : T(0);
    }
  }
};
template <class T>
struct Polar {
  explicit Polar(const void*) {}
  complex<T> operator()(T size, T angle) const {
    return {size * std::cos(angle), size * std::sin(angle)};
  }
};

// The inverse of erf: Giles' approximation (M. Giles, Approximating the erfinv function, GPU
// Computing Gems, 2011), then two steps of Halley's method on erf, or erfc where that is exact.
double erfinv_of(double x) {
  double size = std::fabs(x);
  if (!(size < 1)) {
    return size == 1 ? std::copysign(std::numeric_limits<double>::infinity(), x)
                     : std::numeric_limits<double>::quiet_NaN();
  }
  if (x == 0) return x;
  double w = -std::log((1 - size) * (1 + size)), p;
  if (w < 5) {
    w -= 2.5;
    p = 2.81022636e-08;
    for (double c : {3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
                     -0.00417768164, 0.246640727, 1.50140941}) {
      p = c + p * w;
    }
  } else {
    w = std::sqrt(w) - 3;
    p = -0.000200214257;
    for (double c : {0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
                     0.00943887047, 1.00167406, 2.83297682}) {
      p = c + p * w;
    }
  }
  double y = p * size;
  for (int step = 0; step < 2; ++step) {
    double error = size > 0.5 ? (1 - size) - std::erfc(y) : std::erf(y) - size;
    double u = error / (1.12837916709551257390 * std::exp(-y * y));
    y -= u / (1 + y * u);
  }
  return std::copysign(y, x);
}
// psi(x): reflection for negative x, recurrence up to 10, then the asymptotic series.
double digamma_of(double x) {
  if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  double result = 0;
  if (x < 0) {
    double whole;
    double fraction = std::modf(x, &whole);
    if (fraction == 0) return std::numeric_limits<double>::quiet_NaN();
    constexpr double pi = 3.14159265358979323846;
    result = -pi / std::tan(pi * fraction);
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  double z = 1 / (x * x);
  double series =
      z * (1.0 / 12 - z * (1.0 / 120 -
                           z * (1.0 / 252 -
                                z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  return result + std::log(x) - 0.5 / x - series;
}
LAMELLA_OP1(Erfinv, static_cast<T>(erfinv_of(a)))
LAMELLA_OP1(Digamma, static_cast<T>(digamma_of(a)))

}  // namespace

#define LAMELLA_INT_LOOPS(Op)                                                  \
  {&plain_loop<Op<uint8_t>, uint8_t, 2>, &plain_loop<Op<int8_t>, int8_t, 2>,   \
   &plain_loop<Op<int16_t>, int16_t, 2>, &plain_loop<Op<int32_t>, int32_t, 2>, \
   &plain_loop<Op<int64_t>, int64_t, 2>}
LAMELLA_OTHER_LOOPS(div_trunc);
const LoopFn div_trunc_others[kLoopTypes] = LAMELLA_INT_LOOPS(IntDivTrunc);
LAMELLA_OTHER_LOOPS(pow);
const LoopFn pow_others[kLoopTypes] = {&plain_loop<IntPow<uint8_t>, uint8_t, 2>,
                                       &plain_loop<IntPow<int8_t>, int8_t, 2>,
                                       &plain_loop<IntPow<int16_t>, int16_t, 2>,
                                       &plain_loop<IntPow<int32_t>, int32_t, 2>,
                                       &plain_loop<IntPow<int64_t>, int64_t, 2>,
                                       nullptr,
                                       nullptr,
                                       &complex_pow_float,
                                       &complex_pow_double};

LAMELLA_POINTWISE(div_floor, plain_table<DivFloor, 2>("div", 0, RealTypes()));
LAMELLA_PLAIN2(remainder, Remainder, RealTypes);
LAMELLA_PLAIN2(fmod, Fmod, RealTypes);
LAMELLA_POINTWISE(nextafter, plain_table<NextAfter, 2>("nextafter", 1, FloatTypes()));
LAMELLA_PLAIN2(xlogy, Xlogy, FloatTypes);
LAMELLA_PLAIN2(heaviside, Heaviside, RealBoolTypes);
LAMELLA_PLAIN2(gcd, Gcd, IntTypes);
LAMELLA_PLAIN2(lcm, Lcm, IntTypes);
LAMELLA_POINTWISE(round_decimals, plain_table<RoundDecimals, 1>("round", 2, FloatTypes()));
LAMELLA_POINTWISE(replace, plain_table<Replace, 1>("clamp", 1, RealTypes()));
LAMELLA_PLAIN1(angle, Angle, FloatComplexTypes);
LAMELLA_PLAIN2(polar, Polar, FloatTypes);
LAMELLA_PLAIN1(erfinv, Erfinv, FloatTypes);
LAMELLA_PLAIN1(digamma, Digamma, FloatTypes);

}  // namespace lamella::native
