// Special functions of one and two numbers: Bessel and Airy functions, orthogonal polynomials and
// incomplete gamma functions. Each is one function of doubles, whatever the dtype; those of
// special/ are compiled for vectors.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lamella/kernels/families/families.h"
#include "lamella/kernels/families/special/blocks.h"

namespace aten::native {
namespace {

using special::Function;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = 3.14159265358979323846;

bool is_nan(double x) { return std::isnan(x); }

void check_real(const char* op, const char* name, const Tensor& x) {
  LAMELLA_CHECK_TYPE(!x.is_complex(), op, ": expected '", name, "' to be real, got ",
                     x.scalar_type());
}

// The elements as contiguous float64, in the memory order of x if x is dense.
Tensor in_memory(const Tensor& x) {
  const Tensor made = x.to(kDouble);
  return made.is_non_overlapping_and_dense() ? made : made.contiguous();
}

// Applies block(from, to, count), which computes `count` results, to all elements of x.
template <class F>
Tensor map_blocks(const char* op, const Tensor& x, const F& block) {
  check_real(op, "self", x);
  const ScalarType type = floating(x.scalar_type());
  if (x.is_meta()) return lamella::empty_like(x, x.options().dtype(type));
  const Tensor from = in_memory(x);
  const Tensor to = lamella::empty_like(from);
  const auto* in = from.const_data_ptr<double>();
  auto* out = to.mutable_data_ptr<double>();
  in_parallel(x.numel(), 512,
              [&](int64_t begin, int64_t end) { block(in + begin, out + begin, end - begin); });
  return to.to(type);
}
Tensor map(const char* op, const Tensor& x, double (*f)(double)) {
  return map_blocks(op, x, [f](const double* from, double* to, int64_t count) {
    for (int64_t i = 0; i < count; ++i) to[i] = f(from[i]);
  });
}
Tensor map(const char* op, const Tensor& x, special::Function f) {
  return map_blocks(op, x, special::blocks().function[static_cast<int>(f)]);
}

// Applies block(x, y, to, count), which computes `count` results, to all elements. If `one`, b is a
// single number, and y points to it.
template <class F>
Tensor map_blocks(const char* op, const Tensor& a, const Tensor& b, bool one, const F& block) {
  check_real(op, "self", a);
  check_real(op, "other", b);
  const ScalarType type = floating(lamella::result_type(a, b));
  const auto both = lamella::broadcast_tensors({a, b});
  if (a.is_meta() || b.is_meta()) {
    return lamella::empty_like(both[0],
                               both[0].options().dtype(type).device(Device(DeviceType::Meta)));
  }
  const Tensor x = in_memory(both[0]);
  const Tensor y = one ? in_memory(b) : lamella::empty_like(x).copy_(both[1]);
  const Tensor to = lamella::empty_like(x);
  const auto *p = x.const_data_ptr<double>(), *q = y.const_data_ptr<double>();
  auto* out = to.mutable_data_ptr<double>();
  in_parallel(x.numel(), 512, [&](int64_t begin, int64_t end) {
    block(p + begin, one ? q : q + begin, out + begin, end - begin);
  });
  return to.to(type);
}
double spherical_j0(double x) {
  if (std::isinf(x)) return 0;
  if (std::fabs(x) < 0.5) {
    const double z = x * x;
    return 1 + z * (-1.0 / 6 +
                    z * (1.0 / 120 +
                         z * (-1.0 / 5040 + z * (1.0 / 362880 + z * (-1.0 / 39916800 +
                                                                     z * (1.0 / 6227020800.0))))));
  }
  return std::sin(x) / x;
}

// ---- Airy's function ----

constexpr int kFirstPoint = -12, kLastPoint = 12;
// Ai and its derivative at the integers from kFirstPoint to kLastPoint.
constexpr double kAiry[][2] = {
    {-0.066555175054373129474, 1.0231104533679707299},
    {-0.00875958925570238129, -1.0273278736645794215},
    {0.040241238486443190689, 0.9962650441327900559},
    {-0.022133721547341403674, -0.97566398092633159471},
    {-0.052705050356386202622, 0.93556093819830655103},
    {0.18428083525050563728, -0.77100816841012654773},
    {-0.32914517362982310523, 0.34593548728134289493},
    {0.35076100902411431979, 0.32719281855444313679},
    {-0.070265532949289515099, -0.7906285753685813803},
    {-0.37881429367765807435, 0.31458376921659881365},
    {0.22740742820168557599, 0.61825902074169104141},
    {0.5355608832923521188, -0.010160567116645209395},
    {0.35502805388781723926, -0.25881940379280679841},
    {0.13529241631288141552, -0.15914744129679321279},
    {0.034924130423274379135, -0.053090384433653631704},
    {0.0065911393574607191443, -0.011912976705951318474},
    {0.00095156385120480187362, -0.0019586409502041789001},
    {0.00010834442813607441735, -0.000247413890868462476},
    {9.9476943602528895702e-6, -0.000024765200397034954754},
    {7.4921288639971670808e-7, -2.0081508947387919912e-6},
    {4.6922076160992316256e-8, -1.3414392979067865743e-7},
    {2.4711684308724898433e-9, -7.4806413896589464128e-9},
    {1.1047532552898685934e-10, -3.5206336767389236366e-10},
    {4.2262758649603595913e-12, -1.4111441246628517335e-11},
    {1.393184688875360839e-13, -4.854736554985308463e-13},
};
// Ai for large |x|, by the series of Abramowitz and Stegun 10.4.59 and 10.4.60.
double airy_far(double x) {
  // zeta = 2 / 3 size^(3/2) as a sum of two numbers, because exp, sin and cos amplify its error.
  const double size = std::fabs(x), half = std::sqrt(size), product = size * half;
  const double product_rest =
      std::fma(size, half, -product) + size * std::fma(-half, half, size) / (2 * half);
  const double zeta = 2 * product / 3;
  const double rest = (std::fma(-3, zeta, 2 * product) + 2 * product_rest) / 3;
  double even = 0, odd = 0, term = 1;
  for (int k = 0; k < 20; ++k) {
    if (k > 0) {
      const double next =
          term * (6.0 * k - 5) * (6.0 * k - 3) * (6.0 * k - 1) / (216.0 * k * (2.0 * k - 1)) / zeta;
      if (next > term) break;
      term = next;
    }
    (k % 2 == 0 ? even : odd) += x > 0 || k % 4 < 2 ? term : -term;
  }
  const double root = std::sqrt(half * kPi);
  if (x > 0) return std::exp(-zeta) * (1 - rest) * (even - odd) / (2 * root);
  // The angle is zeta plus an eighth of a turn.
  double sine = std::sin(zeta), cosine = std::cos(zeta);
  const double turned = sine + rest * cosine;
  cosine -= rest * sine;
  sine = turned;
  return ((sine + cosine) * even - (cosine - sine) * odd) / (std::sqrt(2.0) * root);
}
double airy_ai(double x) {
  if (is_nan(x)) return x;
  if (x > 120) return 0;
  if (std::isinf(x)) return 0;
  const double nearest = std::nearbyint(x);
  if (nearest < kFirstPoint || nearest > kLastPoint) return airy_far(x);
  // The Taylor series about the nearest integer; y'' = x y gives its coefficients.
  const double* start = kAiry[static_cast<int>(nearest) - kFirstPoint];
  const double h = x - nearest;
  double before = 0, now = start[0], next = start[1], power = h, sum = start[0];
  for (int n = 1; n < 30; ++n) {
    sum += next * power;
    const double after = (nearest * now + before) / ((n + 1.0) * n);
    before = now;
    now = next;
    next = after;
    power *= h;
  }
  return sum;
}

// ---- Orthogonal polynomials ----

using special::Family;
constexpr double kHighestDegree = 1e6;

// Closed forms with x = cos t: T is cos n t; U is sin (n + 1) t / sin t; V is
// cos (n + 1/2) t / cos (t / 2); W is sin (n + 1/2) t / sin (t / 2).
double chebyshev_of_high_degree(Family family, double x, double n, bool is_odd) {
  const double sign = x < 0 && is_odd ? -1 : 1;
  if (std::fabs(x) < 1) {
    const double t = std::acos(x);
    switch (family) {
      case Family::kChebyshevT:
        return std::cos(n * t);
      case Family::kChebyshevU:
        return std::sin((n + 1) * t) / std::sin(t);
      case Family::kChebyshevV:
        return std::cos((n + 0.5) * t) / std::cos(t / 2);
      default:
        return std::sin((n + 0.5) * t) / std::sin(t / 2);
    }
  }
  // For |x| >= 1 the functions are hyperbolic, and V and W exchange roles for negative x.
  const double t = std::acosh(std::fabs(x));
  if (family == Family::kChebyshevT) return sign * std::cosh(n * t);
  const bool is_u = family == Family::kChebyshevU;
  const bool is_cosine =
      (family == Family::kChebyshevV && x > 0) || (family == Family::kChebyshevW && x < 0);
  const double high = is_u ? n + 1 : n + 0.5, low = is_u ? 1 : 0.5;
  if (t == 0) return sign * (is_cosine ? 1 : high / low);
  if (high * t > 700) return sign * kInf;
  return sign * (is_cosine ? std::cosh(high * t) / std::cosh(low * t)
                           : std::sinh(high * t) / std::sinh(low * t));
}
bool is_chebyshev(Family family) { return family <= Family::kChebyshevW; }
// Computes `count` elements of the polynomial of one degree.
void polynomial(Family family, bool shifted, const double* from, double degree, double* to,
                int64_t count) {
  const auto n = static_cast<int64_t>(std::fmin(degree, 1e18));
  const bool is_far = is_chebyshev(family) && n > 64;
  if (is_nan(degree) || n < 0) {
    for (int64_t i = 0; i < count; ++i) to[i] = is_nan(degree) || is_nan(from[i]) ? kNan : 0;
    return;
  }
  const auto block = special::blocks().polynomial[static_cast<int>(family)];
  if (!shifted && !is_far) return block(from, n, to, count);
  constexpr int64_t kChunk = 256;
  double moved[kChunk];
  for (int64_t at = 0; at < count; at += kChunk) {
    const int64_t size = std::min(kChunk, count - at);
    for (int64_t i = 0; i < size; ++i) moved[i] = shifted ? 2 * from[at + i] - 1 : from[at + i];
    if (!is_far) block(moved, n, to + at, size);
    for (int64_t i = 0; is_far && i < size; ++i) {
      to[at + i] = is_nan(moved[i]) ? kNan
                                    : chebyshev_of_high_degree(family, moved[i],
                                                               static_cast<double>(n), n % 2 != 0);
    }
  }
}
Tensor map_polynomial(const char* op, const Tensor& x, const Tensor& n, Family family,
                      bool shifted = false) {
  // The degree is limited, because each takes a step, except for Chebyshev polynomials, which have
  // closed forms.
  if (!is_chebyshev(family) && !n.is_meta() && n.numel() != 0) {
    const double highest = n.nan_to_num(0.0, kInf, -kInf).max().item().toDouble();
    LAMELLA_CHECK_VALUE(!(highest > kHighestDegree), op, ": expected 'n' to be at most ",
                        static_cast<int64_t>(kHighestDegree), ", got ", highest);
  }
  const bool one = n.numel() == 1;
  return map_blocks(op, x, n, one,
                    [&](const double* from, const double* degree, double* to, int64_t count) {
                      for (int64_t i = 0, next = 0; i < count; i = next) {
                        next = one ? count : i + 1;
                        while (next < count && degree[next] == degree[i]) ++next;
                        polynomial(family, shifted, from + i, degree[i], to + i, next - i);
                      }
                    });
}

// ---- Incomplete gamma functions ----

// log(1 + u) - u, by its series for small u.
double log1p_beyond(double u) {
  if (std::fabs(u) >= 0.1) return std::log1p(u) - u;
  double power = u, sum = 0;
  for (int k = 2; k < 24; ++k) {
    power *= -u;
    sum += power / k;
  }
  return sum;
}
// x^a exp(-x) / Gamma(a + 1), computed without cancellation where x is near a.
double first_term(double a, double x) {
  if (a < 8 || std::fabs(x - a) > 0.4 * a) {
    return std::exp(a * std::log(x) - x - std::lgamma(a + 1));
  }
  const double log_part = log1p_beyond((x - a) / a);
  // Stirling's series: Gamma(a + 1) = sqrt(2 pi a) (a / e)^a exp(1 / 12 a - ...).
  const double z = 1 / (a * a);
  const double rest =
      (1.0 / 12 +
       z * (-1.0 / 360 +
            z * (1.0 / 1260 + z * (-1.0 / 1680 + z * (1.0 / 1188 - z * (691.0 / 360360)))))) /
      a;
  return std::exp(a * log_part - rest) / std::sqrt(2 * kPi * a);
}
// The series of Abramowitz and Stegun 6.5.29, and the continued fraction 6.5.31 by Lentz's method,
// until a further step changes the result by less than `precision`.
double lower_series(double a, double x, double precision) {
  double term = 1, sum = 1;
  for (double k = a + 1; term > sum * (precision / 10); k += 1) sum += term *= x / k;
  return first_term(a, x) * sum;
}
double upper_fraction(double a, double x, double precision) {
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (double i = 1; i < 1e6; i += 1) {
    const double an = -i * (i - a);
    b += 2;
    d = an * d + b;
    c = b + an / c;
    if (d == 0) d = 1e-300;
    if (c == 0) c = 1e-300;
    d = 1 / d;
    const double factor = d * c;
    h *= factor;
    if (std::fabs(factor - 1) < precision) break;
  }
  return first_term(a, x) * a * h;
}
// Q for small a and x, where 1 - P would cancel: Gamma(a) Q = Gamma(a) - x^a / a - sum ...
double upper_small(double a, double x) {
  double term = 1, sum = 0;
  for (int k = 1; k < 60; ++k) {
    term *= -x / k;
    sum += term / (a + k);
    if (std::fabs(term) < 1e-18) break;
  }
  // 1 - x^a / Gamma(a + 1) by its logarithm.
  const double log_power = a * std::log(x) - std::lgamma(a + 1);
  return -std::expm1(log_power) - a * std::exp(log_power) * sum;
}
// For huge a, Temme's expansion (DLMF 8.12.3 to 8.12.7); the omitted terms are of the order
// a^(-3/2).
constexpr double kHuge = 1e8;
double gamma_of_huge(double a, double x, bool upper) {
  const double u = (x - a) / a, half = -log1p_beyond(u);
  const double eta = std::copysign(std::sqrt(2 * half), u);
  // Near 0, 1 / u - 1 / eta cancels, so its series is used.
  const double first =
      std::fabs(u) < 1e-3 ? -1.0 / 3 + u / 12 - u * u * 23.0 / 540 : 1 / u - 1 / eta;
  const double rest = std::exp(-a * half) / std::sqrt(2 * kPi * a) * first;
  const double z = eta * std::sqrt(a / 2);
  return upper ? std::erfc(z) / 2 + rest : std::erfc(-z) / 2 - rest;
}
// The regularised incomplete gamma function P or, if `upper`, Q.
double incomplete_gamma(double a, double x, bool upper, double precision) {
  if (is_nan(a) || is_nan(x) || a < 0 || x < 0 || (a == 0 && x == 0)) return kNan;
  if (a == 0) return upper ? 0 : 1;
  if (x == 0) return upper ? 1 : 0;
  if (std::isinf(a)) return std::isinf(x) ? kNan : upper ? 1 : 0;
  if (std::isinf(x)) return upper ? 0 : 1;
  if (a > kHuge) return gamma_of_huge(a, x, upper);
  if (upper && x <= 1.1 && a < 1 && a * 1.1 < x + 0.5) return upper_small(a, x);
  // Where Q is not small, 1 - P serves for float32, and the series takes fewer steps.
  const bool serves = precision > 1e-12 && (!upper || a > 0.5);
  const double reach = serves ? a + 4 : a;
  if (x <= 1 || x <= reach) {
    const double p = lower_series(a, x, precision);
    return upper ? 1 - p : p;
  }
  const double q = x < 1.1 && a < 1 ? upper_small(a, x) : upper_fraction(a, x, precision);
  return upper ? q : 1 - q;
}
Tensor map_gamma(const char* op, const Tensor& a, const Tensor& x, bool upper) {
  const bool is_double = floating(lamella::result_type(a, x)) == kDouble;
  const double precision = is_double ? 1e-16 : 1e-11;
  return map_blocks(op, a, x, false,
                    [=](const double* p, const double* q, double* to, int64_t count) {
                      for (int64_t i = 0; i < count; ++i) {
                        to[i] = incomplete_gamma(p[i], q[i], upper, precision);
                      }
                    });
}

}  // namespace

#define LAMELLA_MAP1(name, argument, f) \
  Tensor name(const Tensor& argument) { return map(#name, argument, f); }
LAMELLA_MAP1(special_airy_ai, x, airy_ai)
LAMELLA_MAP1(special_bessel_j0, self, Function::kJ0)
LAMELLA_MAP1(special_bessel_j1, self, Function::kJ1)
LAMELLA_MAP1(special_bessel_y0, self, Function::kY0)
LAMELLA_MAP1(special_bessel_y1, self, Function::kY1)
Tensor special_modified_bessel_i0(const Tensor& self) { return lamella::i0(self); }
Tensor special_modified_bessel_i1(const Tensor& self) { return lamella::special_i1(self); }
LAMELLA_MAP1(special_modified_bessel_k0, self, Function::kK0)
LAMELLA_MAP1(special_modified_bessel_k1, self, Function::kK1)
LAMELLA_MAP1(special_scaled_modified_bessel_k0, x, Function::kScaledK0)
LAMELLA_MAP1(special_scaled_modified_bessel_k1, x, Function::kScaledK1)
LAMELLA_MAP1(special_spherical_bessel_j0, x, spherical_j0)

#define LAMELLA_POLYNOMIAL(name, ...)                                                              \
  Tensor name(const Tensor& x, const Tensor& n) {                                                  \
    return map_polynomial(#name, x, n, __VA_ARGS__);                                               \
  }                                                                                                \
  Tensor name(const Scalar& x, const Tensor& n) {                                                  \
    return aten::name(lamella::scalar_tensor(x, n.options().dtype(floating(n.scalar_type()))), n); \
  }                                                                                                \
  Tensor name(const Tensor& x, const Scalar& n) {                                                  \
    return aten::name(x, lamella::scalar_tensor(n, x.options().dtype(floating(x.scalar_type())))); \
  }
LAMELLA_POLYNOMIAL(special_chebyshev_polynomial_t, Family::kChebyshevT)
LAMELLA_POLYNOMIAL(special_chebyshev_polynomial_u, Family::kChebyshevU)
LAMELLA_POLYNOMIAL(special_chebyshev_polynomial_v, Family::kChebyshevV)
LAMELLA_POLYNOMIAL(special_chebyshev_polynomial_w, Family::kChebyshevW)
LAMELLA_POLYNOMIAL(special_hermite_polynomial_h, Family::kHermite)
LAMELLA_POLYNOMIAL(special_hermite_polynomial_he, Family::kHermiteE)
LAMELLA_POLYNOMIAL(special_laguerre_polynomial_l, Family::kLaguerre)
LAMELLA_POLYNOMIAL(special_legendre_polynomial_p, Family::kLegendre)
LAMELLA_POLYNOMIAL(special_shifted_chebyshev_polynomial_t, Family::kChebyshevT, true)
LAMELLA_POLYNOMIAL(special_shifted_chebyshev_polynomial_u, Family::kChebyshevU, true)
LAMELLA_POLYNOMIAL(special_shifted_chebyshev_polynomial_v, Family::kChebyshevV, true)
LAMELLA_POLYNOMIAL(special_shifted_chebyshev_polynomial_w, Family::kChebyshevW, true)

Tensor igamma(const Tensor& self, const Tensor& other) {
  return map_gamma("igamma", self, other, false);
}
Tensor igammac(const Tensor& self, const Tensor& other) {
  return map_gamma("igammac", self, other, true);
}
Tensor special_gammainc(const Tensor& self, const Tensor& other) {
  return aten::igamma(self, other);
}
Tensor special_gammaincc(const Tensor& self, const Tensor& other) {
  return aten::igammac(self, other);
}

}  // namespace aten::native
