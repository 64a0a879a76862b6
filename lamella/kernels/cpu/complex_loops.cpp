// Loops of elementary functions over complex numbers, made of the standard library's functions.
#include <complex>
#include <limits>

#include "lamella/kernels/cpu/loops.h"

namespace lamella::native {
namespace {

template <class R>
using C = std::complex<R>;

template <class R, class F>
void map(char* const* data, int64_t n, F f) {
  auto* out = reinterpret_cast<C<R>*>(data[0]);
  auto* a = reinterpret_cast<const C<R>*>(data[1]);
  for (int64_t i = 0; i < n; ++i) out[i] = f(a[i]);
}

// exp(z) - 1 without cancellation near 0.
template <class R>
C<R> expm1_of(C<R> z) {
  R half = std::sin(z.imag() / 2);
  R real = std::expm1(z.real()) * std::cos(z.imag()) - 2 * half * half;
  return {real, std::exp(z.real()) * std::sin(z.imag())};
}
// log(1 + z) without cancellation near 0.
template <class R>
C<R> log1p_of(C<R> z) {
  R x = z.real(), y = z.imag();
  R size =
      std::abs(z) < R(0.5) ? std::log1p(x * (2 + x) + y * y) / 2 : std::log(std::abs(R(1) + z));
  return {size, std::atan2(y, 1 + x)};
}
template <class R>
C<R> sigmoid_of(C<R> z) {
  return R(1) / (R(1) + std::exp(-z));
}

template <class R>
C<R> sinc_of(C<R> z) {
  constexpr R kPi = R(3.14159265358979323846);
  return z == C<R>(0) ? C<R>(1) : std::sin(kPi * z) / (kPi * z);
}
// grad times the conjugate of the derivative of silu.
template <class R>
void silu_backward_loop(char* const* data, int64_t n, const void*) {
  auto* out = reinterpret_cast<C<R>*>(data[0]);
  auto* grad = reinterpret_cast<const C<R>*>(data[1]);
  auto* x = reinterpret_cast<const C<R>*>(data[2]);
  for (int64_t i = 0; i < n; ++i) {
    C<R> s = sigmoid_of(x[i]);
    out[i] = grad[i] * std::conj(s * (R(1) + x[i] * (R(1) - s)));
  }
}

// log(exp(a) + exp(b)) without overflow, as most + log(1 + exp(least - most)).
template <class R>
void logaddexp_loop(char* const* data, int64_t n, const void*) {
  auto* out = reinterpret_cast<C<R>*>(data[0]);
  auto* a = reinterpret_cast<const C<R>*>(data[1]);
  auto* b = reinterpret_cast<const C<R>*>(data[2]);
  for (int64_t i = 0; i < n; ++i) {
    bool first = a[i].real() >= b[i].real();
    C<R> most = first ? a[i] : b[i], least = first ? b[i] : a[i];
    bool is_zero = most.real() == -std::numeric_limits<R>::infinity();
    out[i] = is_zero ? most : most + log1p_of(std::exp(least - most));
  }
}

template <class R>
void pow_loop(char* const* data, int64_t n) {
  auto* out = reinterpret_cast<C<R>*>(data[0]);
  auto* a = reinterpret_cast<const C<R>*>(data[1]);
  auto* b = reinterpret_cast<const C<R>*>(data[2]);
  for (int64_t i = 0; i < n; ++i) {
    out[i] = b[i] == C<R>(0) ? C<R>(1) : b[i] == C<R>(2) ? a[i] * a[i] : std::pow(a[i], b[i]);
  }
}

}  // namespace

void complex_pow_float(char* const* data, int64_t n, const void*) { pow_loop<float>(data, n); }
void complex_pow_double(char* const* data, int64_t n, const void*) { pow_loop<double>(data, n); }

#define LAMELLA_COMPLEX_TABLE(name)                              \
  LAMELLA_OTHER_LOOPS(name);                                     \
  const LoopFn name##_others[kLoopTypes] = {nullptr,             \
                                            nullptr,             \
                                            nullptr,             \
                                            nullptr,             \
                                            nullptr,             \
                                            nullptr,             \
                                            nullptr,             \
                                            &name##_loop<float>, \
                                            &name##_loop<double>};
#define LAMELLA_COMPLEX_LOOPS(name, expression)                 \
  namespace {                                                   \
  template <class R>                                            \
  void name##_loop(char* const* data, int64_t n, const void*) { \
    map<R>(data, n, [](C<R> z) -> C<R> { return expression; }); \
  }                                                             \
  }                                                             \
  LAMELLA_COMPLEX_TABLE(name)
LAMELLA_COMPLEX_LOOPS(exp, std::exp(z))
LAMELLA_COMPLEX_LOOPS(exp2, std::exp(z* R(0.69314718055994530942)))
LAMELLA_COMPLEX_LOOPS(expm1, expm1_of(z))
LAMELLA_COMPLEX_LOOPS(log, std::log(z))
LAMELLA_COMPLEX_LOOPS(log2, std::log(z) * R(1.44269504088896340736))
LAMELLA_COMPLEX_LOOPS(log10, std::log10(z))
LAMELLA_COMPLEX_LOOPS(log1p, log1p_of(z))
LAMELLA_COMPLEX_LOOPS(sin, std::sin(z))
LAMELLA_COMPLEX_LOOPS(cos, std::cos(z))
LAMELLA_COMPLEX_LOOPS(tan, std::tan(z))
LAMELLA_COMPLEX_LOOPS(asin, std::asin(z))
LAMELLA_COMPLEX_LOOPS(acos, std::acos(z))
LAMELLA_COMPLEX_LOOPS(atan, std::atan(z))
LAMELLA_COMPLEX_LOOPS(sinh, std::sinh(z))
LAMELLA_COMPLEX_LOOPS(cosh, std::cosh(z))
LAMELLA_COMPLEX_LOOPS(tanh, std::tanh(z))
LAMELLA_COMPLEX_LOOPS(asinh, std::asinh(z))
LAMELLA_COMPLEX_LOOPS(acosh, std::acosh(z))
LAMELLA_COMPLEX_LOOPS(atanh, std::atanh(z))
LAMELLA_COMPLEX_LOOPS(sigmoid, sigmoid_of(z))
LAMELLA_COMPLEX_LOOPS(silu, z* sigmoid_of(z))
LAMELLA_COMPLEX_LOOPS(sqrt, std::sqrt(z))
LAMELLA_COMPLEX_LOOPS(rsqrt, R(1) / std::sqrt(z))
LAMELLA_COMPLEX_LOOPS(sinc, sinc_of(z))
LAMELLA_COMPLEX_TABLE(logaddexp)
LAMELLA_COMPLEX_TABLE(silu_backward)

}  // namespace lamella::native
