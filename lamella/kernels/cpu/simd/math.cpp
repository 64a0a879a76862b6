// Powers, erfc and lgamma (these two by SLEEF), and activations.
#include "lamella/kernels/cpu/simd/error_function.h"
#include "lamella/kernels/cpu/simd/power.h"

#if defined(__x86_64__)
namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

LAMELLA_SLEEF_UNARY(erfc, u15)
LAMELLA_SLEEF_UNARY(lgamma, u10)

LAMELLA_VEC1(Erf, v_erf(a))
LAMELLA_VEC1(Erfc, v_erfc(a))
LAMELLA_VEC1(Lgamma, v_lgamma(a))
LAMELLA_VEC2(Pow, v_pow(a, b))
LAMELLA_VEC2(Hypot, v_hypot(a, b))

LAMELLA_VEC1(Silu, a* v_sigmoid(a))
// x * Phi(x), Phi the normal distribution function. float32 takes Phi from a rational
// approximation of erfc that is within 1.5e-7 (M. Abramowitz, I. Stegun, Handbook of Mathematical
// Functions, 7.1.26): erf itself would cost five times as much.
inline VecF normal_distribution(VecF x) {
  VecF z = v_abs(x) * 0.70710678118654752440f;
  VecF t = 1 / (1 + 0.3275911f * z);
  VecF p = t * (0.254829592f +
                t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  VecF tail = 0.5f * p * v_exp(-z * z);
  return x < 0 ? tail : 1 - tail;
}
inline VecD normal_distribution(VecD x) { return 0.5 * v_erfc(x * -0.70710678118654752440); }
// Below -20 the distribution is 0, which an infinite x must not multiply.
LAMELLA_VEC1(Gelu, a < -20 ? Vec<T>{} : a * normal_distribution(a))
// Its approximation (D. Hendrycks, K. Gimpel, Gaussian Error Linear Units, 2016, section 2).
LAMELLA_VEC1(GeluTanh,
             a* T(0.5) * (1 + v_tanh(T(0.79788456080286535588) * (a + T(0.044715) * a * a * a))))
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
LAMELLA_VEC1(Mish, a* v_tanh(a > 20 ? a : v_log1p(v_exp(a))))
LAMELLA_VEC1(LogSigmoid, (a < 0 ? a : Vec<T>{}) - v_log1p(v_exp(-v_abs(a))))
// log(exp a + exp b) without overflow; equal infinities stay.
LAMELLA_VEC2(LogAddExp, a == b ? a + T(0.69314718055994530942)
                               : (a > b ? a : b) + v_log1p(v_exp(-v_abs(a - b))))
LAMELLA_VEC2(LogAddExp2,
             a == b ? a + 1
                    : (a > b ? a : b) + v_log1p(v_exp2(-v_abs(a - b))) * T(1.44269504088896340736))

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_MATH1(silu, Silu);
LAMELLA_POINTWISE(erf, vector_table<Erf, 1>("erf", 0));
LAMELLA_POINTWISE(erfc, vector_table<Erfc, 1>("erfc", 0));
LAMELLA_POINTWISE(lgamma, vector_table<Lgamma, 1>("lgamma", 0));
LAMELLA_POINTWISE(gelu, vector_table<Gelu, 1>("gelu", 0));
LAMELLA_POINTWISE(gelu_tanh, vector_table<GeluTanh, 1>("gelu", 0));
LAMELLA_POINTWISE(softplus, vector_table<Softplus, 1>("softplus", 2));
LAMELLA_POINTWISE(elu, vector_table<Elu, 1>("elu", 3));
LAMELLA_POINTWISE(mish, vector_table<Mish, 1>("mish", 0));
LAMELLA_POINTWISE(log_sigmoid, vector_table<LogSigmoid, 1>("log_sigmoid", 0));
LAMELLA_OTHER_LOOPS(pow);
LAMELLA_POINTWISE(pow, vector_table<Pow, 2>("pow", 0, pow_others));
LAMELLA_POINTWISE(hypot, vector_table<Hypot, 2>("hypot", 0));
LAMELLA_OTHER_LOOPS(logaddexp);
LAMELLA_POINTWISE(logaddexp, vector_table<LogAddExp, 2>("logaddexp", 0, logaddexp_others));
LAMELLA_POINTWISE(logaddexp2, vector_table<LogAddExp2, 2>("logaddexp2", 0));

}  // namespace lamella::native
#endif
