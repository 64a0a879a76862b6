// The functions of pointwise kernels, and the list of kernels: loop(name, inputs) has its types.
#pragma once
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

LAMELLA_FUNCTION1(Copy, a)
LAMELLA_FUNCTION2(Add, static_cast<T>(Wrap<T>(a) + Wrap<T>(b)))
LAMELLA_FUNCTION2(Sub, static_cast<T>(Wrap<T>(a) - Wrap<T>(b)))
LAMELLA_FUNCTION2(Mul, static_cast<T>(Wrap<T>(a) * Wrap<T>(b)))
LAMELLA_FUNCTION2(Div, a / b)
LAMELLA_SCALED(AddAlpha, (T a, T b), static_cast<T>(Wrap<T>(a) + Wrap<T>(s(0)) * Wrap<T>(b)))
LAMELLA_SCALED(AddProduct, (T a, T b, T c), a + s(0) * b * c)
LAMELLA_SCALED(AddQuotient, (T a, T b, T c), a + s(0) * b / c)
LAMELLA_FUNCTION2(Maximum, (a > b || a != a) ? a : b)
LAMELLA_FUNCTION2(Minimum, (a < b || a != a) ? a : b)
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
LAMELLA_FUNCTION1(IsNan, a != a)
LAMELLA_FUNCTION1(Reciprocal, T(1) / a)
LAMELLA_FUNCTION(Where, (bool condition, T a, T b), condition ? a : b)

template <class T>
struct Neg {
  LAMELLA_DEVICE explicit Neg(const PointwiseParameters&) {}
  LAMELLA_DEVICE T operator()(T a) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(0 - static_cast<uint64_t>(a));
    } else {
      return -a;
    }
  }
};
template <class T>
struct Abs {
  LAMELLA_DEVICE explicit Abs(const PointwiseParameters&) {}
  LAMELLA_DEVICE T operator()(T a) const {
    if constexpr (std::is_integral_v<T>) {
      return a < T(0) ? static_cast<T>(0 - static_cast<uint64_t>(a)) : a;
    } else if constexpr (sizeof(T) == 4) {
      return __builtin_fabsf(a);
    } else {
      return __builtin_fabs(a);
    }
  }
};
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
LAMELLA_FUNCTION1(Sqrt, root(a))
LAMELLA_FUNCTION1(Rsqrt, T(1) / root(a))

// f(loop, Function, inputs, first, T, suffix): `first` is the type of the first operand.
#define LAMELLA_KERNELS_INT(f, loop, F, n)                                      \
  f(loop, F, n, uint8_t, uint8_t, u8) f(loop, F, n, int8_t, int8_t, i8)         \
      f(loop, F, n, int16_t, int16_t, i16) f(loop, F, n, int32_t, int32_t, i32) \
          f(loop, F, n, int64_t, int64_t, i64)
#define LAMELLA_KERNELS_FLOAT(f, loop, F, n) \
  f(loop, F, n, float, float, f32) f(loop, F, n, double, double, f64)
#define LAMELLA_KERNELS_BOOL(f, loop, F, n) f(loop, F, n, bool, bool, b8)
#define LAMELLA_KERNELS_REAL(f, loop, F, n) \
  LAMELLA_KERNELS_INT(f, loop, F, n) LAMELLA_KERNELS_FLOAT(f, loop, F, n)
#define LAMELLA_KERNELS_ALL(f, loop, F, n) \
  LAMELLA_KERNELS_REAL(f, loop, F, n) LAMELLA_KERNELS_BOOL(f, loop, F, n)

#define LAMELLA_ARITHMETIC_KERNELS(f)                 \
  LAMELLA_KERNELS_ALL(f, copy, Copy, 1)               \
  LAMELLA_KERNELS_REAL(f, add, Add, 2)                \
  LAMELLA_KERNELS_REAL(f, add_alpha, AddAlpha, 2)     \
  LAMELLA_KERNELS_REAL(f, sub, Sub, 2)                \
  LAMELLA_KERNELS_REAL(f, mul, Mul, 2)                \
  LAMELLA_KERNELS_FLOAT(f, div_true, Div, 2)          \
  LAMELLA_KERNELS_REAL(f, maximum, Maximum, 2)        \
  LAMELLA_KERNELS_REAL(f, minimum, Minimum, 2)        \
  LAMELLA_KERNELS_REAL(f, neg, Neg, 1)                \
  LAMELLA_KERNELS_REAL(f, abs, Abs, 1)                \
  LAMELLA_KERNELS_FLOAT(f, sqrt, Sqrt, 1)             \
  LAMELLA_KERNELS_FLOAT(f, rsqrt, Rsqrt, 1)           \
  LAMELLA_KERNELS_FLOAT(f, reciprocal, Reciprocal, 1) \
  LAMELLA_KERNELS_FLOAT(f, addcmul, AddProduct, 3)    \
  LAMELLA_KERNELS_FLOAT(f, addcdiv, AddQuotient, 3)

#define LAMELLA_LOGIC_KERNELS(f)                                               \
  LAMELLA_KERNELS_ALL(f, eq, Eq, 2)                                            \
  LAMELLA_KERNELS_ALL(f, ne, Ne, 2)                                            \
  LAMELLA_KERNELS_ALL(f, lt, Lt, 2)                                            \
  LAMELLA_KERNELS_ALL(f, le, Le, 2)                                            \
  LAMELLA_KERNELS_ALL(f, gt, Gt, 2)                                            \
  LAMELLA_KERNELS_ALL(f, ge, Ge, 2)                                            \
  LAMELLA_KERNELS_ALL(f, logical_and, LogicalAnd, 2)                           \
  LAMELLA_KERNELS_ALL(f, logical_or, LogicalOr, 2)                             \
  LAMELLA_KERNELS_ALL(f, logical_xor, LogicalXor, 2)                           \
  LAMELLA_KERNELS_ALL(f, logical_not, LogicalNot, 1)                           \
  LAMELLA_KERNELS_INT(f, bitwise_and, BitAnd, 2)                               \
  LAMELLA_KERNELS_BOOL(f, bitwise_and, BitAnd, 2)                              \
  LAMELLA_KERNELS_INT(f, bitwise_or, BitOr, 2)                                 \
  LAMELLA_KERNELS_BOOL(f, bitwise_or, BitOr, 2)                                \
  LAMELLA_KERNELS_INT(f, bitwise_xor, BitXor, 2)                               \
  LAMELLA_KERNELS_BOOL(f, bitwise_xor, BitXor, 2)                              \
  LAMELLA_KERNELS_FLOAT(f, isnan, IsNan, 1)                                    \
  f(where, Where, 3, bool, uint8_t, u8) f(where, Where, 3, bool, int16_t, i16) \
      f(where, Where, 3, bool, int32_t, i32) f(where, Where, 3, bool, int64_t, i64)

}  // namespace lamella::cuda
