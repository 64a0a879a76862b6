// Activations of neural networks, and logaddexp.
#include "lamella/kernels/cpu/simd/activation.h"
#include "lamella/kernels/cpu/simd/logarithm.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

LAMELLA_VEC1(Silu, a* v_sigmoid(a))
LAMELLA_VEC1(GeluTanh, v_gelu_tanh(a))
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
LAMELLA_VEC1(Mish, v_mish(a))
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
