// Gradients of activations, computed from the gradient of the output and the input or output.
#include "lamella/kernels/cpu/loops.h"
#include "lamella/kernels/cpu/simd/activation.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

template <class T>
inline T conj_of(T x) {
  if constexpr (is_complex_type_v<T>) {
    return T(x.real(), -x.imag());
  } else {
    return x;
  }
}
// `a` is the gradient, `b` the output.
LAMELLA_OP2(SigmoidBackward, a* conj_of<T>(b*(T(1) - b)))
LAMELLA_OP2(TanhBackward, a* conj_of<T>(T(1) - b * b))

// From here on `b` is the input, unless noted otherwise.
template <class T>
struct ThresholdBackward {
  T threshold;
  explicit ThresholdBackward(const void* p) : threshold(param<T>(p, 0)) {}
  T operator()(T a, T b) const { return b <= threshold ? T(0) : a; }
};
template <class T>
struct LeakyReluBackward {
  T slope;
  explicit LeakyReluBackward(const void* p) : slope(param<T>(p, 0)) {}
  T operator()(T a, T b) const { return b > T(0) ? a : a * slope; }
};
template <class T>
struct HardtanhBackward {
  T least, most;
  explicit HardtanhBackward(const void* p) : least(param<T>(p, 0)), most(param<T>(p, 1)) {}
  T operator()(T a, T b) const { return (b <= least) | (b >= most) ? T(0) : a; }
};
template <class T>
struct ShrinkBackward {
  T size;
  explicit ShrinkBackward(const void* p) : size(param<T>(p, 0)) {}
  T operator()(T a, T b) const { return (b >= -size) & (b <= size) ? T(0) : a; }
};
LAMELLA_OP2(HardswishBackward, b <= T(-3) ? T(0) : b < T(3) ? a * (b / T(3) + T(0.5)) : a)
LAMELLA_OP2(HardsigmoidBackward, (b > T(-3)) & (b < T(3)) ? a / T(6) : T(0))
// Parameter: the bound to which the input was clamped; negative without clamping.
template <class T>
struct LogitBackward {
  T eps;
  explicit LogitBackward(const void* p) : eps(param<T>(p, 0)) {}
  T operator()(T a, T b) const {
    if (eps < T(0)) {
      return b < T(0) || b > T(1) ? static_cast<T>(__builtin_nan("")) : a / (b * (T(1) - b));
    }
    return b < eps || b > T(1) - eps ? T(0) : a / (b * (T(1) - b));
  }
};
template <class T>
struct Hardshrink {
  T size;
  explicit Hardshrink(const void* p) : size(param<T>(p, 0)) {}
  T operator()(T a) const { return (a >= -size) & (a <= size) ? T(0) : a; }
};
template <class T>
struct Softshrink {
  T size;
  explicit Softshrink(const void* p) : size(param<T>(p, 0)) {}
  T operator()(T a) const { return a > size ? a - size : a < -size ? a + size : a * T(0); }
};
// `b` is the slope for negative numbers.
LAMELLA_OP2(Prelu, a > T(0) ? a : a * b)

template <class T>
inline Vec<T> silu_slope(Vec<T> x) {
  Vec<T> s = v_sigmoid(x);
  return s * (1 + x * (1 - s));
}
template <class T>
struct SoftplusBackward {
  T beta, threshold;
  explicit SoftplusBackward(const void* p) : beta(param<T>(p, 0)), threshold(param<T>(p, 1)) {}
  Vec<T> operator()(Vec<T> a, Vec<T> b) const {
    Vec<T> x = b * beta;
    return x > threshold ? a : a * v_sigmoid(x);
  }
};
// Parameters: alpha, scale, input_scale, whether `b` is the output.
template <class T>
struct EluBackward {
  T negative, positive, input;
  bool from_output;
  explicit EluBackward(const void* p)
      : negative(param<T>(p, 0) * param<T>(p, 1)),
        positive(param<T>(p, 1)),
        input(param<T>(p, 2)),
        from_output(param<T>(p, 3) != T(0)) {}
  Vec<T> operator()(Vec<T> a, Vec<T> b) const {
    Vec<T> below = from_output ? b + negative : negative * v_exp(b * input);
    return b <= 0 ? a * input * below : a * positive;
  }
};

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_PLAIN2(sigmoid_backward, SigmoidBackward, FloatComplexTypes);
LAMELLA_PLAIN2(tanh_backward, TanhBackward, FloatComplexTypes);
LAMELLA_POINTWISE(threshold_backward,
                  plain_table<ThresholdBackward, 2>("threshold_backward", 1, RealTypes()));
LAMELLA_POINTWISE(leaky_relu_backward,
                  plain_table<LeakyReluBackward, 2>("leaky_relu_backward", 1, FloatTypes()));
LAMELLA_POINTWISE(hardtanh_backward,
                  plain_table<HardtanhBackward, 2>("hardtanh_backward", 2, FloatTypes()));
LAMELLA_PLAIN2(hardswish_backward, HardswishBackward, FloatTypes);
LAMELLA_PLAIN2(hardsigmoid_backward, HardsigmoidBackward, FloatTypes);
LAMELLA_POINTWISE(logit_backward, plain_table<LogitBackward, 2>("logit_backward", 1, FloatTypes()));
LAMELLA_POINTWISE(shrink_backward,
                  plain_table<ShrinkBackward, 2>("hardshrink_backward", 1, FloatTypes()));
LAMELLA_POINTWISE(hardshrink, plain_table<Hardshrink, 1>("hardshrink", 1, FloatTypes()));
LAMELLA_POINTWISE(softshrink, plain_table<Softshrink, 1>("softshrink", 1, FloatTypes()));
LAMELLA_PLAIN2(prelu, Prelu, FloatTypes);
LAMELLA_MATH2(silu_backward, "silu_backward", a* silu_slope<T>(b));
LAMELLA_VEC2(gelu_backward, "gelu_backward", v_gelu_backward(a, b));
LAMELLA_VEC2(gelu_tanh_backward, "gelu_backward", v_gelu_tanh_backward(a, b));
LAMELLA_VEC2(mish_backward, "mish_backward", v_mish_backward(a, b));
LAMELLA_VEC2(log_sigmoid_backward, "log_sigmoid_backward", a* v_sigmoid(-b));
LAMELLA_POINTWISE(softplus_backward, vector_table<SoftplusBackward, 2>("softplus_backward", 2));
LAMELLA_POINTWISE(elu_backward, vector_table<EluBackward, 2>("elu_backward", 4));

}  // namespace lamella::native
