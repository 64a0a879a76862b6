// Activations of neural networks, and logaddexp.
#include "lamella/kernels/cpu/simd/logarithm.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

LAMELLA_VEC1(Silu, a* v_sigmoid(a))
// gelu by tanh (D. Hendrycks, K. Gimpel, Gaussian Error Linear Units, 2016, section 2), as
// x sigmoid(2 u), which keeps its accuracy for negative x.
template <class T>
inline Vec<T> gelu_tanh(Vec<T> a) {
  using V = Vec<T>;
  constexpr long double kScale = 1.595769121605730711759542L, kCube = 0.071354816272600248779574L;
  constexpr T kScaleUpper = T(kScale), kCubeUpper = T(kCube);
  constexpr T kScaleRest = T(kScale - kScaleUpper), kCubeRest = T(kCube - kCubeUpper);
  // Beyond 40 the result is a, below -40 it is 0, so the bounds change nothing.
  V x = v_at_most(v_at_least(a, T(-40)), T(40));
  // An error of u is multiplied by u in the result, so u is computed in two parts.
  Twice<V> square = v_product(x, x);
  Twice<V> cube = v_product(square.high, V{} + kCubeUpper);
  cube.low += v_fma(square.low, V{} + kCubeUpper, square.high * kCubeRest);
  Twice<V> sum = v_sum(V{} + kScaleUpper, cube.high);
  sum.low += cube.low + kScaleRest;
  Twice<V> u = v_product(x, sum.high);
  u.low = v_fma(x, sum.low, u.low);
  return v_at_least(a, T(-40)) * v_sigmoid(u.high, u.low);
}
LAMELLA_VEC1(GeluTanh, gelu_tanh<T>(a))
// log(1 + exp(beta x)) / beta, which is x above the threshold.
template <class T>
struct Softplus {
  T beta, threshold;
  explicit Softplus(const void* p) : beta(param<T>(p, 0)), threshold(param<T>(p, 1)) {}
  Vec<T> operator()(Vec<T> a) const {
    Vec<T> x = a * beta;
    return x > threshold ? a : v_log1p(v_exp(x)) / beta;
  }
};
// Parameters: alpha, scale, input_scale.
template <class T>
struct Elu {
  T negative, positive, input;
  explicit Elu(const void* p)
      : negative(param<T>(p, 0) * param<T>(p, 1)),
        positive(param<T>(p, 1)),
        input(param<T>(p, 2)) {}
  Vec<T> operator()(Vec<T> a) const { return a < 0 ? v_expm1(a * input) * negative : a * positive; }
};
// x tanh(log(1 + e)) = x n / (n + 2), with e = exp(x) and n = e (e + 2).
template <class T>
inline Vec<T> mish(Vec<T> a) {
  Vec<T> e = v_exp(v_at_most(a, T(20))), n = v_fma(e, e, 2 * e);
  return a > 20 ? a : v_at_least(a, T(-1e4)) * (n / (n + 2));
}
LAMELLA_VEC1(Mish, mish<T>(a))
LAMELLA_VEC1(LogSigmoid, (a < 0 ? a : Vec<T>{}) - v_log1p(v_exp(-v_abs(a))))
// log(exp a + exp b) without overflow. Equal operands are a case of their own, because inf - inf is
// NaN.
LAMELLA_VEC2(LogAddExp, a == b ? a + T(0.69314718055994530942)
                               : (a > b ? a : b) + v_log1p(v_exp(-v_abs(a - b))))
LAMELLA_VEC2(LogAddExp2,
             a == b ? a + 1
                    : (a > b ? a : b) + v_log1p(v_exp2(-v_abs(a - b))) * T(1.44269504088896340736))

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_MATH1(silu, Silu);
LAMELLA_POINTWISE(gelu_tanh, vector_table<GeluTanh, 1>("gelu", 0));
LAMELLA_POINTWISE(softplus, vector_table<Softplus, 1>("softplus", 2));
LAMELLA_POINTWISE(elu, vector_table<Elu, 1>("elu", 3));
LAMELLA_POINTWISE(mish, vector_table<Mish, 1>("mish", 0));
LAMELLA_POINTWISE(log_sigmoid, vector_table<LogSigmoid, 1>("log_sigmoid", 0));
LAMELLA_OTHER_LOOPS(logaddexp);
LAMELLA_POINTWISE(logaddexp, vector_table<LogAddExp, 2>("logaddexp", 0, logaddexp_others));
LAMELLA_POINTWISE(logaddexp2, vector_table<LogAddExp2, 2>("logaddexp2", 0));

}  // namespace lamella::native
