// Activations of neural networks, and logaddexp.
#include "lamella/kernels/cpu/simd/activation.h"
#include "lamella/kernels/cpu/simd/logarithm.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

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

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_MATH1(silu, a* v_sigmoid(a));
LAMELLA_VEC1(gelu_tanh, "gelu", v_gelu_tanh(a));
LAMELLA_POINTWISE(softplus, vector_table<Softplus, 1>("softplus", 2));
LAMELLA_POINTWISE(elu, vector_table<Elu, 1>("elu", 3));
LAMELLA_VEC1(mish, "mish", v_mish(a));
LAMELLA_VEC1(log_sigmoid, "log_sigmoid", (a < 0 ? a : Vec<T>{}) - v_log1p(v_exp(-v_abs(a))));
// log(exp a + exp b) without overflow. Equal operands are a case of their own, because inf - inf is
// NaN.
LAMELLA_MATH2(logaddexp, "logaddexp",
              a == b ? a + T(0.69314718055994530942)
                     : (a > b ? a : b) + v_log1p(v_exp(-v_abs(a - b))));
LAMELLA_VEC2(logaddexp2, "logaddexp2",
             a == b ? a + 1
                    : (a > b ? a : b) + v_log1p(v_exp2(-v_abs(a - b))) * T(1.44269504088896340736));

}  // namespace lamella::native
