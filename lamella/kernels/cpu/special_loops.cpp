// Special functions, computed in double precision.
#include <cmath>
#include <limits>

#include "lamella/kernels/cpu/loops.h"
#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = 3.14159265358979323846;
constexpr double kRootHalf = 0.70710678118654752440;
constexpr double kRootTwoPi = 2.50662827463100050242;

// ---- The normal distribution ----

// exp(x^2) erfc(x). From 10 on by the asymptotic series, whose terms fall below an ULP before they
// grow again.
double erfcx_of(double x) {
  if (x < 10) return std::exp(x * x) * std::erfc(x);
  double sum = 1, term = 1, by = -0.5 / (x * x);
  for (int k = 1; k <= 12; ++k) sum += term *= (2 * k - 1) * by;
  return sum / (x * 1.77245385090551602730);
}
// log of the distribution function: below -1 through erfcx, as the function itself underflows.
double log_ndtr_of(double x) {
  if (x < -1) return std::log(erfcx_of(-x * kRootHalf) / 2) - x * x / 2;
  return std::log1p(-std::erfc(x * kRootHalf) / 2);
}
// Its inverse, by Newton's method on the logarithm, from a rational approximation (M. Abramowitz,
// I. Stegun, Handbook of Mathematical Functions, 26.2.23).
double ndtri_of(double p) {
  if (!(p > 0 && p < 1)) return p == 0 ? -kInf : p == 1 ? kInf : kNan;
  bool upper = p > 0.5;
  if (upper) p = 1 - p;
  double log_p = std::log(p), t = std::sqrt(-2 * log_p);
  double x = (2.515517 + t * (0.802853 + t * 0.010328)) /
                 (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) -
             t;
  for (int step = 0; step < 4; ++step) {
    double value = log_ndtr_of(x);
    x -= (value - log_p) * kRootTwoPi * std::exp(value + x * x / 2);
  }
  return upper ? -x : x;
}

// ---- Modified Bessel functions of the first kind, of order 0 and 1 ----

// exp(-|x|) I(x): the power series has positive terms only; the asymptotic one is exact from 30 on.
double bessel_scaled(int order, double x) {
  double size = std::fabs(x), result;
  if (std::isinf(x)) {
    result = 0;
  } else if (size < 30) {
    double square = size * size / 4, term = order == 0 ? 1 : size / 2, sum = term;
    for (int k = 1; term > sum * 1e-17; ++k) sum += term *= square / (k * (k + order));
    result = sum * std::exp(-size);
  } else {
    double mu = 4.0 * order * order, term = 1, sum = 1;
    for (int k = 1; k < 30; ++k) {
      double odd = 2 * k - 1;
      term *= (odd * odd - mu) / (8 * size * k);
      sum += term;
      if (std::fabs(term) < 1e-17) break;
    }
    result = sum / std::sqrt(2 * kPi * size);
  }
  return order == 1 && x < 0 ? -result : result;
}
double bessel(int order, double x) {
  double size = std::fabs(x);
  // In two steps: exp alone overflows before the product does.
  double half = std::exp(size / 2);
  double scaled = bessel_scaled(order, x);
  return scaled == 0 ? (order == 0 ? half : x) : scaled * half * half;
}

// ---- Zeta and polygamma ----

// The sum over k of (q + k)^-x, by Euler and Maclaurin's formula.
double zeta_of(double x, double q) {
  if (x == 1) return kInf;
  if (!(x > 1)) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInf;
    if (x != std::floor(x)) return kNan;
  }
  double sum = 0;
  for (; q < 10; q += 1) sum += std::pow(q, -x);
  // Bernoulli numbers B(2j) over (2j)!.
  constexpr double kCoefficients[] = {1.0 / 12,
                                      -1.0 / 720,
                                      1.0 / 30240,
                                      -1.0 / 1209600,
                                      1.0 / 47900160,
                                      -691.0 / 1307674368000.0,
                                      1.0 / 74724249600.0,
                                      -3617.0 / 10670622842880000.0};
  double power = std::pow(q, -x);
  sum += power * q / (x - 1) + power / 2;
  double rising = x, at = x;
  power /= q;
  for (double c : kCoefficients) {
    double term = c * rising * power;
    sum += term;
    if (std::fabs(term) < std::fabs(sum) * 1e-17) break;
    rising *= (at + 1) * (at + 2);
    at += 2;
    power /= q * q;
  }
  return sum;
}
double polygamma_of(double n, double x) {
  if (n == 1 && x < 0.5) {  // by reflection, however negative x is
    if (x == std::floor(x)) return kInf;
    double s = kPi / std::sin(kPi * x);
    return s * s - zeta_of(2, 1 - x);
  }
  double value = std::tgamma(n + 1) * zeta_of(n + 1, x);
  return std::fmod(n, 2) == 0 ? -value : value;
}

double entr_of(double x) {
  if (x != x) return x;
  return x > 0 ? -x * std::log(x) : x == 0 ? 0.0 : -kInf;
}

LAMELLA_OP1(Entr, static_cast<T>(entr_of(a)))
LAMELLA_OP1(Erfcx, static_cast<T>(erfcx_of(a)))
LAMELLA_OP1(LogNdtr, static_cast<T>(log_ndtr_of(a)))
LAMELLA_OP1(Ndtri, static_cast<T>(ndtri_of(a)))
LAMELLA_OP1(I0, static_cast<T>(bessel(0, a)))
LAMELLA_OP1(I0e, static_cast<T>(bessel_scaled(0, a)))
LAMELLA_OP1(I1, static_cast<T>(bessel(1, a)))
LAMELLA_OP1(I1e, static_cast<T>(bessel_scaled(1, a)))
LAMELLA_OP2(Zeta, static_cast<T>(zeta_of(a, b)))
LAMELLA_OP2(Xlog1py, b != b ? b : a == 0 ? T(0) : static_cast<T>(a * std::log1p(b)))
LAMELLA_OP1(Sinc, a == 0 ? T(1) : std::sin(T(kPi) * a) / (T(kPi) * a))
// Parameter: the bound that the input is brought within; negative: none.
template <class T>
struct Logit {
  T eps;
  explicit Logit(const void* p) : eps(param<T>(p, 0)) {}
  T operator()(T a) const {
    if (eps >= 0) a = a < eps ? eps : a > 1 - eps ? 1 - eps : a;
    return std::log(a / (1 - a));
  }
};
// Parameter: the order.
template <class T>
struct Polygamma {
  T order;
  explicit Polygamma(const void* p) : order(param<T>(p, 0)) {}
  T operator()(T a) const { return static_cast<T>(polygamma_of(order, a)); }
};

}  // namespace

LAMELLA_POINTWISE(entr, plain_table<Entr, 1>("special_entr", 0, FloatTypes()));
LAMELLA_POINTWISE(erfcx, plain_table<Erfcx, 1>("special_erfcx", 0, FloatTypes()));
LAMELLA_POINTWISE(log_ndtr, plain_table<LogNdtr, 1>("special_log_ndtr", 0, FloatTypes()));
LAMELLA_POINTWISE(ndtri, plain_table<Ndtri, 1>("special_ndtri", 0, FloatTypes()));
LAMELLA_PLAIN1(i0, I0, FloatTypes);
LAMELLA_POINTWISE(i0e, plain_table<I0e, 1>("special_i0e", 0, FloatTypes()));
LAMELLA_POINTWISE(i1, plain_table<I1, 1>("special_i1", 0, FloatTypes()));
LAMELLA_POINTWISE(i1e, plain_table<I1e, 1>("special_i1e", 0, FloatTypes()));
LAMELLA_POINTWISE(zeta, plain_table<Zeta, 2>("special_zeta", 0, FloatTypes()));
LAMELLA_POINTWISE(xlog1py, plain_table<Xlog1py, 2>("special_xlog1py", 0, FloatTypes()));
LAMELLA_OTHER_LOOPS(sinc);
LAMELLA_POINTWISE(sinc, plain_table<Sinc, 1>("sinc", 0, FloatTypes(), sinc_others));
LAMELLA_POINTWISE(logit, plain_table<Logit, 1>("logit", 1, FloatTypes()));
LAMELLA_POINTWISE(polygamma, plain_table<Polygamma, 1>("polygamma", 1, FloatTypes()));

}  // namespace lamella::native
