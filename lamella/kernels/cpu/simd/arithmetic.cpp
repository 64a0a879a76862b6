// Arithmetic of two tensors: add, sub, mul, div, minimum and maximum.
#include "lamella/kernels/cpu/loops.h"
#include "lamella/kernels/cpu/selecting.h"
#include "lamella/kernels/cpu/simd/vec.h"
#include "lamella/kernels/cpu/wide_types.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

// Computed as unsigned, so that integers wrap.
template <class T>
using Wrap = std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>,
                                std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>, T>;

template <class T>
struct Add {
  explicit Add(const void*) {}
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>) {
      return a | b;
    } else {
      return static_cast<T>(Wrap<T>(a) + Wrap<T>(b));
    }
  }
};
template <class T>
struct AddAlpha {
  T alpha;
  explicit AddAlpha(const void* params) : alpha(param<T>(params, 0)) {}
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>) {
      return a | (b & alpha);
    } else {
      return static_cast<T>(Wrap<T>(a) + Wrap<T>(alpha) * Wrap<T>(b));
    }
  }
};
LAMELLA_OP2(Sub, static_cast<T>(Wrap<T>(a) - Wrap<T>(b)))

// a b + c, rounded once where the capability has the instruction. GCC 12 fuses products and sums of
// complex numbers in vectors although contraction is off, but not in the remaining elements; with
// this function both round the same way.
template <class T>
inline T fused(T a, T b, T c) {
#if defined(__FP_FAST_FMA)
  if constexpr (sizeof(T) == 4) return __builtin_fmaf(a, b, c);
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}
template <class T>
inline complex<T> product(complex<T> a, complex<T> b) {
  return {fused(a.real(), b.real(), -(a.imag() * b.imag())),
          fused(a.real(), b.imag(), a.imag() * b.real())};
}
// The quotient, in the order of operations of the division of `complex`.
template <class T>
inline complex<T> quotient(complex<T> a, complex<T> b) {
  T re = b.real() < 0 ? -b.real() : b.real(), im = b.imag() < 0 ? -b.imag() : b.imag();
  bool is_real = re >= im;
  if (re == 0 && im == 0) return {a.real() / T(0), a.imag() / T(0)};
  T large = is_real ? b.real() : b.imag(), small = is_real ? b.imag() : b.real();
  T ratio = small / large, scale = 1 / fused(small, ratio, large);
  if (is_real) {
    return {fused(a.imag(), ratio, a.real()) * scale, fused(-a.real(), ratio, a.imag()) * scale};
  }
  return {fused(a.real(), ratio, a.imag()) * scale, fused(a.imag(), ratio, -a.real()) * scale};
}

template <class T>
struct Mul {
  explicit Mul(const void*) {}
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>) {
      return a & b;
    } else if constexpr (is_complex_type_v<T>) {
      return product(a, b);
    } else {
      return static_cast<T>(Wrap<T>(a) * Wrap<T>(b));
    }
  }
};
template <class T>
struct Div {
  explicit Div(const void*) {}
  T operator()(T a, T b) const {
    if constexpr (is_complex_type_v<T>) {
      return quotient(a, b);
    } else {
      return a / b;
    }
  }
};
template <class T>
struct DivTrunc {
  explicit DivTrunc(const void*) {}
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, float>) {
      return __builtin_truncf(a / b);
    } else {
      return __builtin_trunc(a / b);
    }
  }
};
template <class T>
struct CopySign {
  explicit CopySign(const void*) {}
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, float>) {
      return __builtin_copysignf(a, b);
    } else {
      return __builtin_copysign(a, b);
    }
  }
};
// NaN if either is NaN.
LAMELLA_OP2(Maximum, (a > b || a != a) ? a : b)
LAMELLA_OP2(Minimum, (a < b || a != a) ? a : b)
// The other operand if one is NaN.
LAMELLA_OP2(Fmax, (a > b || b != b) ? a : b)
LAMELLA_OP2(Fmin, (a < b || b != b) ? a : b)
LAMELLA_OP1(Square, a* a)
LAMELLA_OP1(Cube, a* a* a)
LAMELLA_OP1(InverseSquare, T(1) / (a * a))

// The order of bool is that of its bytes.
template <template <class> class Op>
constexpr LoopTable extreme_table(const char* name) {
  LoopTable table = plain_table<Op, 2>(name, 0, WideRealTypes());
  table.loops[loop_index(kBool)] = table.loops[loop_index(kByte)];
  return table;
}

}  // namespace

template <>
inline constexpr bool kResultIsExact<CopySign<float>> = true;
template <>
inline constexpr bool kResultIsExact<Maximum<float>> = true;
template <>
inline constexpr bool kResultIsExact<Minimum<float>> = true;
template <>
inline constexpr bool kResultIsExact<Fmax<float>> = true;
template <>
inline constexpr bool kResultIsExact<Fmin<float>> = true;
}  // namespace CPU_CAPABILITY

using MulTypes = JoinTypes<AllTypes, UnsignedTypes>;
LAMELLA_PLAIN2(add, Add, WideAllTypes);
LAMELLA_POINTWISE(add_alpha, plain_table<AddAlpha, 2>("add", 1, WideAllTypes()));
LAMELLA_PLAIN2(sub, Sub, WideNumberTypes);
LAMELLA_PLAIN2(mul, Mul, MulTypes);
LAMELLA_POINTWISE(div_true, plain_table<Div, 2>("div", 0, FloatComplexTypes()));
LAMELLA_OTHER_LOOPS(div_trunc);
LAMELLA_POINTWISE(div_trunc, plain_table<DivTrunc, 2>("div", 0, FloatTypes(), div_trunc_others));
LAMELLA_PLAIN2(copysign, CopySign, FloatTypes);
LAMELLA_POINTWISE(maximum, extreme_table<Maximum>("maximum"));
LAMELLA_POINTWISE(minimum, extreme_table<Minimum>("minimum"));

namespace {
LoopFn combining_loop_of(Combining how, ScalarType dtype) {
  const LoopTable& table = how == Combining::kMaximum   ? maximum_table
                           : how == Combining::kMinimum ? minimum_table
                                                        : mul_table;
  const int at = loop_index(dtype);
  return at < 0 || at >= kLoopTypes ? nullptr : table.loops[at];
}
}  // namespace
LAMELLA_REGISTER_KERNEL(combining_loop_on, &combining_loop_of);

LAMELLA_POINTWISE(fmax, extreme_table<Fmax>("fmax"));
LAMELLA_POINTWISE(fmin, extreme_table<Fmin>("fmin"));
LAMELLA_POINTWISE(pow_square, plain_table<Square, 1>("pow", 0, FloatComplexTypes()));
LAMELLA_POINTWISE(pow_cube, plain_table<Cube, 1>("pow", 0, FloatComplexTypes()));
LAMELLA_POINTWISE(pow_inverse_square, plain_table<InverseSquare, 1>("pow", 0, FloatComplexTypes()));

}  // namespace lamella::native
