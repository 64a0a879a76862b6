// The zeta function, and polygamma of orders from 2 on, computed in double precision.
#include <cmath>
#include <limits>

#include "lamella/kernels/cpu/loops.h"
#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The sum over k of (q + k)^-x, by Euler and Maclaurin's formula.
double zeta_of(double x, double q) {
  if (x == 1) return kInf;
  if (!(x > 1)) return kNan;
  if (x == kInf && !std::isnan(q)) return q < 1 ? kInf : q == 1 ? 1 : 0;
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
  double value = std::tgamma(n + 1) * zeta_of(n + 1, x);
  return std::fmod(n, 2) == 0 ? -value : value;
}

LAMELLA_OP2(Zeta, static_cast<T>(zeta_of(a, b)))
// Parameter: the order.
template <class T>
struct Polygamma {
  T order;
  explicit Polygamma(const void* p) : order(param<T>(p, 0)) {}
  T operator()(T a) const { return static_cast<T>(polygamma_of(order, a)); }
};

}  // namespace

LAMELLA_POINTWISE(zeta, plain_table<Zeta, 2>("special_zeta", 0, FloatTypes()));
LAMELLA_POINTWISE(polygamma, plain_table<Polygamma, 1>("polygamma", 1, FloatTypes()));

}  // namespace lamella::native
