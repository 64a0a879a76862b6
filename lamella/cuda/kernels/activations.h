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
LAMELLA_FUNCTION1(Sign, static_cast<T>((T(0) < a) - (a < T(0))))

template <class T>
LAMELLA_DEVICE T infinity() {
  return static_cast<T>(__builtin_huge_valf());
}
LAMELLA_FUNCTION1(IsInf, a == infinity<T>() || a == -infinity<T>())
LAMELLA_FUNCTION1(IsFinite, (a - a) == T(0))
LAMELLA_FUNCTION1(IsPosInf, a == infinity<T>())
LAMELLA_FUNCTION1(IsNegInf, a == -infinity<T>())
LAMELLA_SCALED(NanToNum, (T a),
               a != a                ? s(0)
               : a == infinity<T>()  ? s(1)
               : a == -infinity<T>() ? s(2)
                                     : a)

template <class T>
LAMELLA_DEVICE T bounded(T a, T least, T most) {
  const T low = a < least ? least : a;  // NaN stays
  return low > most ? most : low;
}
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

#define LAMELLA_ACTIVATION_KERNELS(f)                                 \
  LAMELLA_KERNELS_REAL(f, ceil, Ceil, 1)                              \
  LAMELLA_KERNELS_REAL(f, floor, Floor, 1)                            \
  LAMELLA_KERNELS_REAL(f, trunc, Trunc, 1)                            \
  LAMELLA_KERNELS_REAL(f, round, Round, 1)                            \
  LAMELLA_KERNELS_FLOAT(f, frac, Frac, 1)                             \
  LAMELLA_KERNELS_REAL(f, sign, Sign, 1)                              \
  LAMELLA_KERNELS_FLOAT(f, isinf, IsInf, 1)                           \
  LAMELLA_KERNELS_FLOAT(f, isfinite, IsFinite, 1)                     \
  LAMELLA_KERNELS_FLOAT(f, isposinf, IsPosInf, 1)                     \
  LAMELLA_KERNELS_FLOAT(f, isneginf, IsNegInf, 1)                     \
  LAMELLA_KERNELS_FLOAT(f, nan_to_num, NanToNum, 1)                   \
  LAMELLA_KERNELS_REAL(f, clamp_scalar, ClampScalar, 1)               \
  LAMELLA_KERNELS_REAL(f, clamp_min_scalar, ClampMinScalar, 1)        \
  LAMELLA_KERNELS_REAL(f, clamp_max_scalar, ClampMaxScalar, 1)        \
  LAMELLA_KERNELS_REAL(f, threshold, Threshold, 1)                    \
  LAMELLA_KERNELS_FLOAT(f, leaky_relu, LeakyRelu, 1)                  \
  LAMELLA_KERNELS_FLOAT(f, hardswish, Hardswish, 1)                   \
  LAMELLA_KERNELS_FLOAT(f, hardsigmoid, Hardsigmoid, 1)               \
  LAMELLA_KERNELS_FLOAT(f, prelu, Prelu, 2)                           \
  LAMELLA_KERNELS_FLOAT(f, lerp, Lerp, 3)                             \
  LAMELLA_KERNELS_FLOAT(f, lerp_scalar, LerpScalar, 2)                \
  LAMELLA_KERNELS_FLOAT(f, sigmoid_backward, SigmoidBackward, 2)      \
  LAMELLA_KERNELS_FLOAT(f, tanh_backward, TanhBackward, 2)            \
  LAMELLA_KERNELS_REAL(f, threshold_backward, ThresholdBackward, 2)   \
  LAMELLA_KERNELS_FLOAT(f, leaky_relu_backward, LeakyReluBackward, 2) \
  LAMELLA_KERNELS_FLOAT(f, hardtanh_backward, HardtanhBackward, 2)    \
  LAMELLA_KERNELS_FLOAT(f, hardswish_backward, HardswishBackward, 2)  \
  LAMELLA_KERNELS_FLOAT(f, hardsigmoid_backward, HardsigmoidBackward, 2)

}  // namespace lamella::cuda
