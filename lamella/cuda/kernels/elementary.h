// Elementary functions and activations made of them: those of kernels/cpu/simd, for one number.
#pragma once
#include "lamella/cuda/kernels/functions.h"
#include "lamella/cuda/kernels/lane.h"
#include "lamella/kernels/cpu/simd/activation.h"
#include "lamella/kernels/cpu/simd/error_function.h"
#include "lamella/kernels/cpu/simd/exponential.h"
#include "lamella/kernels/cpu/simd/inverse_trigonometric.h"
#include "lamella/kernels/cpu/simd/logarithm.h"
#include "lamella/kernels/cpu/simd/power.h"
#include "lamella/kernels/cpu/simd/trigonometric.h"

namespace lamella::cuda {

// An expression of lanes a (and b), and of the operator's numbers s(0)...
#define LAMELLA_LANES(Name, arguments, lanes, ...)                                        \
  template <class T>                                                                      \
  struct Name {                                                                           \
    static constexpr bool kIsLong = true;                                                 \
    using V = Lane<T>;                                                                    \
    const PointwiseParameters& p;                                                         \
    LAMELLA_DEVICE explicit Name(const PointwiseParameters& given) : p(given) {}          \
    LAMELLA_DEVICE T s(int i) const { return *reinterpret_cast<const T*>(p.scalars[i]); } \
    LAMELLA_DEVICE T operator() arguments const {                                         \
      using namespace native;                                                             \
      lanes;                                                                              \
      return (__VA_ARGS__).v;                                                             \
    }                                                                                     \
  };
#define LAMELLA_LANES1(Name, ...) LAMELLA_LANES(Name, (T x), const V a(x), __VA_ARGS__)
#define LAMELLA_LANES2(Name, ...) \
  LAMELLA_LANES(Name, (T x, T y), const V a(x); const V b(y), __VA_ARGS__)
LAMELLA_LANES1(Exp, v_exp(a))
LAMELLA_LANES1(Exp2, v_exp2(a))
LAMELLA_LANES1(Expm1, v_expm1(a))
LAMELLA_LANES1(Sinh, v_sinh(a))
LAMELLA_LANES1(Cosh, v_cosh(a))
LAMELLA_LANES1(Tanh, v_tanh(a))
LAMELLA_LANES1(Sigmoid, v_sigmoid(a))
LAMELLA_LANES1(Log, v_log(a))
LAMELLA_LANES1(Log2, v_log2(a))
LAMELLA_LANES1(Log10, v_log10(a))
LAMELLA_LANES1(Log1p, v_log1p(a))
LAMELLA_LANES1(Sin, v_sin(a))
LAMELLA_LANES1(Cos, v_cos(a))
LAMELLA_LANES1(Tan, v_tan(a))
LAMELLA_LANES1(Asin, v_asin(a))
LAMELLA_LANES1(Acos, v_acos(a))
LAMELLA_LANES1(Atan, v_atan(a))
LAMELLA_LANES1(Asinh, v_asinh(a))
LAMELLA_LANES1(Acosh, v_acosh(a))
LAMELLA_LANES1(Atanh, v_atanh(a))
LAMELLA_LANES2(Atan2, v_atan2(a, b))
LAMELLA_LANES2(Hypot, v_hypot(a, b))
LAMELLA_LANES1(Silu, a* v_sigmoid(a))
template <class V>
LAMELLA_DEVICE V silu_slope(V x) {
  const V sigmoid = native::v_sigmoid(x);
  return sigmoid * (1 + x * (1 - sigmoid));
}
LAMELLA_LANES2(SiluBackward, a* silu_slope(b))
LAMELLA_LANES2(LogAddExp, a == b ? a + T(0.69314718055994530942)
                                 : (a > b ? a : b) + v_log1p(v_exp(-v_abs(a - b))))
LAMELLA_LANES2(LogAddExp2, a == b ? a + 1
                                  : (a > b ? a : b) +
                                        v_log1p(v_exp2(-v_abs(a - b))) * T(1.44269504088896340736))
// Scalars: beta and the threshold.
LAMELLA_LANES1(Softplus, a* s(0) > s(1) ? a : v_log1p(v_exp(a * s(0))) / s(0))
LAMELLA_LANES2(SoftplusBackward, b* s(0) > s(1) ? a : a * v_sigmoid(b * s(0)))
// Scalars: alpha, scale, input_scale; of the gradient whether `b` is the output.
LAMELLA_LANES1(Elu, a < 0 ? v_expm1(a * s(2)) * (s(0) * s(1)) : a * s(1))
LAMELLA_LANES2(EluBackward,
               b <= 0 ? a * s(2) * (s(3) != T(0) ? b + s(0) * s(1) : s(0) * s(1) * v_exp(b * s(2)))
                      : a * s(1))
LAMELLA_LANES1(Mish, v_mish(a))
LAMELLA_LANES2(MishBackward, v_mish_backward(a, b))
LAMELLA_LANES1(LogSigmoid, (a < 0 ? a : V{}) - v_log1p(v_exp(-v_abs(a))))
LAMELLA_LANES2(LogSigmoidBackward, a* v_sigmoid(-b))
// Small types take shorter polynomials.
LAMELLA_LANES1(Gelu, p.small == 0 ? v_gelu(a) : p.small == 1 ? v_gelu_half(a) : v_gelu_bfloat16(a))
LAMELLA_LANES1(GeluTanh, v_gelu_tanh(a))
LAMELLA_LANES2(GeluBackward, v_gelu_backward(a, b))
LAMELLA_LANES2(GeluTanhBackward, v_gelu_tanh_backward(a, b))

}  // namespace lamella::cuda
