// Functions of rounding, bounds and classification, and activations with their gradients, without
// elementary functions. Each equals the CPU's of kernels/cpu/simd.
#pragma once
#include <cmath>

#include "lamella/cuda/kernels/functions.h"

namespace lamella::cuda {

#define LAMELLA_ROUNDING(Name, fn)                              \
  template <class T>                                            \
  struct Name {                                                 \
    LAMELLA_DEVICE explicit Name(const PointwiseParameters&) {} \
    LAMELLA_DEVICE T operator()(T a) const {                    \
      if constexpr (std::is_integral_v<T>) {                    \
        return a;                                               \
      } else {                                                  \
        return std::fn(a);                                      \
      }                                                         \
    }                                                           \
  };
LAMELLA_ROUNDING(Ceil, ceil)
LAMELLA_ROUNDING(Floor, floor)
LAMELLA_ROUNDING(Trunc, trunc)
LAMELLA_ROUNDING(Round, rint)
#undef LAMELLA_ROUNDING
LAMELLA_FUNCTION1(Frac, a - std::trunc(a))
// Scalars: 10 to the number of decimals, and whether to divide by it.
LAMELLA_SCALED(RoundDecimals, (T a),
               s(1) != 0 ? std::rint(a / s(0)) * s(0) : std::rint(a * s(0)) / s(0))
LAMELLA_SCALED(Replace, (T), s(0))

template <class T>
LAMELLA_DEVICE T replaced(T a, T nan, T most, T least) {
  if constexpr (is_complex_type_v<T>) {
    return T(replaced(a.real(), nan.real(), most.real(), least.real()),
             replaced(a.imag(), nan.real(), most.real(), least.real()));
  } else if constexpr (is_float<T>) {
    return a != a ? nan : a == infinity<T>() ? most : a == -infinity<T>() ? least : a;
  } else {
    return a;
  }
}
LAMELLA_SCALED(NanToNum, (T a), replaced(a, s(0), s(1), s(2)))

template <class T>
LAMELLA_DEVICE T bounded(T a, T least, T most) {
  const T low = a < least ? least : a;  // NaN stays
  return low > most ? most : low;
}
// NaN if any is NaN; the upper bound takes precedence.
template <class T>
LAMELLA_DEVICE T between(T a, T least, T most) {
  const T low = a != a ? a : least != least ? least : a < least ? least : a;
  return low != low ? low : most != most ? most : low > most ? most : low;
}
LAMELLA_FUNCTION(Clamp, (T a, T b, T c), between(a, b, c))
LAMELLA_SCALED(ClampScalar, (T a), bounded(a, s(0), s(1)))
LAMELLA_SCALED(ClampMinScalar, (T a), a < s(0) ? s(0) : a)
LAMELLA_SCALED(ClampMaxScalar, (T a), a > s(0) ? s(0) : a)
LAMELLA_SCALED(Threshold, (T a), a <= s(0) ? s(1) : a)
LAMELLA_SCALED(LeakyRelu, (T a), a > T(0) ? a : a * s(0))
LAMELLA_FUNCTION1(Hardswish, a* bounded(a + T(3), T(0), T(6)) / T(6))
LAMELLA_FUNCTION1(Hardsigmoid, bounded(a + T(3), T(0), T(6)) / T(6))
LAMELLA_FUNCTION2(Prelu, a > T(0) ? a : a * b)
// From the nearer end.
template <class T>
LAMELLA_DEVICE T mixed(T a, T b, T w) {
  const T size = w < 0 ? -w : w;
  return size < T(0.5) ? a + w * (b - a) : b - (b - a) * (T(1) - w);
}
LAMELLA_FUNCTION(Lerp, (T a, T b, T w), mixed(a, b, w))
LAMELLA_SCALED(LerpScalar, (T a, T b), mixed(a, b, s(0)))

// `a` is the gradient; `b` is the output in the first two and the input in the others.
LAMELLA_FUNCTION2(SigmoidBackward, a*(b*(T(1) - b)))
LAMELLA_FUNCTION2(TanhBackward, a*(T(1) - b * b))
LAMELLA_SCALED(ThresholdBackward, (T a, T b), b <= s(0) ? T(0) : a)
LAMELLA_SCALED(LeakyReluBackward, (T a, T b), b > T(0) ? a : a * s(0))
LAMELLA_SCALED(HardtanhBackward, (T a, T b), (b <= s(0)) | (b >= s(1)) ? T(0) : a)
LAMELLA_FUNCTION2(HardswishBackward, b <= T(-3) ? T(0) : b < T(3) ? a * (b / T(3) + T(0.5)) : a)
LAMELLA_FUNCTION2(HardsigmoidBackward, (b > T(-3)) & (b < T(3)) ? a / T(6) : T(0))

LAMELLA_SCALED(Hardshrink, (T a), (a >= -s(0)) & (a <= s(0)) ? T(0) : a)
LAMELLA_SCALED(Softshrink, (T a), a > s(0) ? a - s(0) : a < -s(0) ? a + s(0) : a * T(0))
LAMELLA_SCALED(ShrinkBackward, (T a, T b), (b >= -s(0)) & (b <= s(0)) ? T(0) : a)
// Scalar: the bound to which the input was clamped; negative without clamping.
template <class T>
LAMELLA_DEVICE T logit_slope(T a, T b, T eps) {
  const T slope = a / (b * (T(1) - b));
  if (eps < T(0)) return b < T(0) || b > T(1) ? static_cast<T>(__builtin_nanf("")) : slope;
  return b < eps || b > T(1) - eps ? T(0) : slope;
}
LAMELLA_SCALED(LogitBackward, (T a, T b), logit_slope(a, b, s(0)))

}  // namespace lamella::cuda
