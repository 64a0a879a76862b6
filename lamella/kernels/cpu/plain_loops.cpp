// Pointwise loops that gain nothing from wider vectors: division, remainders and powers of
// integers, and others. Compiled once, for every capability.
#include <cmath>
#include <limits>

#include "lamella/kernels/cpu/loops.h"
#include "lamella/kernels/cpu/simd/vec.h"
#include "lamella/kernels/cpu/wide_types.h"

namespace lamella::native {

void complex_pow_float(char* const* data, int64_t n, const void* params);
void complex_pow_double(char* const* data, int64_t n, const void* params);

namespace {

[[noreturn]] LAMELLA_COLD void throw_zero_division(const char* op) {
  throw Error(str(op, ": expected integers in 'other' other than zero, got 0"));
}
// The most negative number divided by -1 overflows; it wraps.
template <class T>
inline bool is_minus_one(T b) {
  return std::is_signed_v<T> && b == static_cast<T>(-1);
}
template <class T>
inline T negate(T a) {
  return static_cast<T>(0 - static_cast<uint64_t>(a));
}

// Truncating division. Conditions are computed without branches, which random data would make
// unpredictable.
template <class T>
inline T quotient(T a, T b) {
  T minus = -static_cast<T>(is_minus_one(b));
  T cut = static_cast<T>(a / (is_minus_one(b) ? T(1) : b));
  return static_cast<T>((static_cast<uint64_t>(cut) ^ static_cast<uint64_t>(minus)) -
                        static_cast<uint64_t>(minus));
}
// 1 if the remainder is not 0 and has another sign than the divisor, else 0.
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
    if (LAMELLA_UNLIKELY(b == 0)) throw_zero_division("div");
    T q = quotient(a, b);
    T rest =
        static_cast<T>(a - static_cast<T>(static_cast<uint64_t>(q) * static_cast<uint64_t>(b)));
    return static_cast<T>(q - apart(rest, b));
  }
};
// The result has the sign of the divisor.
template <class T>
struct Remainder {
  explicit Remainder(const void*) {}
  T operator()(T a, T b) const {
    if (LAMELLA_UNLIKELY(b == 0)) throw_zero_division("remainder");
    T rest = static_cast<T>(a % (is_minus_one(b) ? T(1) : b));
    return static_cast<T>(rest + (b & -apart(rest, b)));
  }
};
// The result has the sign of the dividend.
template <class T>
struct Fmod {
  explicit Fmod(const void*) {}
  T operator()(T a, T b) const {
    if (LAMELLA_UNLIKELY(b == 0)) throw_zero_division("fmod");
    return is_minus_one(b) ? T(0) : static_cast<T>(a % b);
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
    return static_cast<T>(std::is_signed_v<T> && product < 0 ? negate(product) : product);
  }
};

template <class T>
struct Replace {  // returns its parameter for every element
  T value;
  explicit Replace(const void* p) : value(param<T>(p, 0)) {}
  T operator()(T) const { return value; }
};
template <class T>
struct Polar {
  explicit Polar(const void*) {}
  complex<T> operator()(T size, T angle) const {
    return {size * std::cos(angle), size * std::sin(angle)};
  }
};

}  // namespace

#define LAMELLA_INT_LOOPS(Op)            \
  {&plain_loop<Op<uint8_t>, uint8_t, 2>, \
   &plain_loop<Op<int8_t>, int8_t, 2>,   \
   &plain_loop<Op<int16_t>, int16_t, 2>, \
   &plain_loop<Op<int32_t>, int32_t, 2>, \
   &plain_loop<Op<int64_t>, int64_t, 2>, \
   nullptr,                              \
   nullptr,                              \
   nullptr,                              \
   nullptr,                              \
   nullptr,                              \
   nullptr,                              \
   nullptr,                              \
   &plain_loop<Op<uint64_t>, uint64_t, 2>}
LAMELLA_OTHER_LOOPS(div_trunc);
const LoopFn div_trunc_others[kLoopTypes] = LAMELLA_INT_LOOPS(IntDivTrunc);
LAMELLA_OTHER_LOOPS(div_floor);
const LoopFn div_floor_others[kLoopTypes] = LAMELLA_INT_LOOPS(DivFloor);
LAMELLA_OTHER_LOOPS(remainder);
const LoopFn remainder_others[kLoopTypes] = LAMELLA_INT_LOOPS(Remainder);
LAMELLA_OTHER_LOOPS(fmod);
const LoopFn fmod_others[kLoopTypes] = LAMELLA_INT_LOOPS(Fmod);
LAMELLA_OTHER_LOOPS(pow);
const LoopFn pow_others[kLoopTypes] = {&plain_loop<IntPow<uint8_t>, uint8_t, 2>,
                                       &plain_loop<IntPow<int8_t>, int8_t, 2>,
                                       &plain_loop<IntPow<int16_t>, int16_t, 2>,
                                       &plain_loop<IntPow<int32_t>, int32_t, 2>,
                                       &plain_loop<IntPow<int64_t>, int64_t, 2>,
                                       nullptr,
                                       nullptr,
                                       &complex_pow_float,
                                       &complex_pow_double,
                                       nullptr,
                                       nullptr,
                                       nullptr,
                                       &plain_loop<IntPow<uint64_t>, uint64_t, 2>};

LAMELLA_PLAIN2(heaviside, Heaviside, WideRealBoolTypes);
LAMELLA_PLAIN2(gcd, Gcd, WideIntTypes);
LAMELLA_PLAIN2(lcm, Lcm, WideIntTypes);
LAMELLA_POINTWISE(replace, plain_table<Replace, 1>("clamp", 1, WideRealTypes()));
LAMELLA_PLAIN2(polar, Polar, FloatTypes);

}  // namespace lamella::native
