// Derivatives of gamma and beta samples by their shapes at a fixed quantile: -(dF / da) / f, with
// the distribution function F and its density f (Figurnov, Mohamed and Mnih, Implicit
// reparameterization gradients, 2018), to nearly full precision.
//
// Note [Series of distribution functions]
//   The incomplete gamma function is x^a e^-x / a (1 + U), where U is the sum over n of
//   x^n / ((a + 1) ... (a + n)). The incomplete beta function is x^a (1 - x)^b / a (1 + U), where U
//   is the sum of x^n (a + b) ... (a + b + n - 1) / ((a + 1) ... (a + n)). All terms are positive.
//   After differentiation by a and division by the density, with psi(a) = psi(1 + a) - 1 / a, no
//   large terms are left that would cancel, however small a is.
//   Far above the mean the series is long and its terms overflow. There the upper incomplete gamma
//   function x^a e^-x h is taken, with Legendre's continued fraction h, which is differentiated
//   along: no term cancels either.
#include <cmath>

#include "lamella/kernels/families/families.h"
#include "lamella/kernels/families/gradients.h"

namespace aten {

using namespace lamella;  // NOLINT(google-build-using-namespace)

namespace {

// The derivative of the logarithm of the gamma function, for x > 0.
double psi(double x) {
  double below = 0;
  for (; x < 10; x += 1) below += 1 / x;
  const double s = 1 / (x * x);
  const double series =
      s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132)))));
  return std::log(x) - 0.5 / x - series - below;
}

// More terms are not needed where a series is used.
constexpr int64_t kMaxTerms = 2'000'000;

// Two sums over n >= 1, of positive terms t(n) = t(n - 1) ratio(n - 1) with t(0) = 1, and of
// t(n) (weight(0) + ... + weight(n - 1)).
template <class Ratio, class Weight>
std::pair<double, double> sums(Ratio ratio, Weight weight) {
  double term = 1, weights = 0, sum = 0, weighted = 0;
  for (int64_t n = 0; n < kMaxTerms; ++n) {
    const double r = ratio(static_cast<double>(n));
    term *= r;
    weights += weight(static_cast<double>(n));
    sum += term;
    weighted += term * weights;
    if (r < 1 && term <= 1e-17 * (1 + sum) * (1 - r)) break;
  }
  return {sum, weighted};
}

// Large shapes: x = a + sqrt(a) z + (z^2 - 1) / 3 + (z^3 - 7 z) / (36 sqrt(a)) + ... of a normal z
// (Cornish and Fisher). The equation is solved for z, and x differentiated by a.
double large_gamma_slope(double a, double x) {
  const double root = std::sqrt(a);
  double z = (x - a) / root;
  for (int i = 0; i < 20; ++i) {
    const double square = z * z;
    const double off = a + root * z + (square - 1) / 3 + z * (square - 7) / (36 * root) - x;
    const double step = off / (root + 2 * z / 3 + (3 * square - 7) / (36 * root));
    z -= step;
    if (std::abs(step) <= 1e-15 * (1 + std::abs(z))) break;
  }
  return 1 + z / (2 * root) - z * (z * z - 7) / (72 * a * root);
}

// Above the mean: x (h (log x - psi(a)) + dh / da), with h = 1 / (x + 1 - a - 1 (1 - a) / (x + 3 -
// a
// - 2 (2 - a) / (x + 5 - a - ...))) by Lentz's method, whose factors C and D are differentiated.
double upper_gamma_slope(double a, double x) {
  const double slope = std::log(x) - psi(a);
  double b = x + 1 - a, d = 1 / b, dd = d * d, c = 0, dc = 0, h = d, dh = dd;
  for (int64_t n = 1; n < 10000; ++n) {
    const auto k = static_cast<double>(n);
    const double part = -k * (k - a);
    b += 2;
    // With C = b + part / C before, where the first C is infinite.
    const double dc_new = n == 1 ? -1 : -1 + k / c - part * dc / (c * c);
    c = n == 1 ? b : b + part / c;
    dc = dc_new;
    const double below = part * d + b, d_below = k * d + part * dd - 1;
    d = 1 / below;
    dd = -d_below * d * d;
    const double factor = c * d, d_factor = dc * d + c * dd;
    dh = dh * factor + h * d_factor;
    h *= factor;
    if (std::abs(factor - 1) <= 3e-16 &&
        std::abs(d_factor * h) <= 1e-16 * (std::abs(dh) + h * slope))
      break;
  }
  return x * h * slope + x * dh;
}

double gamma_slope(double a, double x) {
  if (!(a > 0) || !(x > 0) || !std::isfinite(a) || !std::isfinite(x)) return 0.0 * (a + x);
  if (a > 1e5 && x > a / 2 && x < 2 * a) return large_gamma_slope(a, x);
  if (x > a + 2 * std::sqrt(a) + 3) return upper_gamma_slope(a, x);
  const auto [u, du] =
      sums([&](double n) { return x / (a + 1 + n); }, [&](double n) { return -1 / (a + 1 + n); });
  return -x / a * ((std::log(x) - psi(1 + a)) * (1 + u) + du);
}

double beta_slope(double x, double a, double total) {
  const double b = total - a;
  if (!(a > 0) || !(b > 0) || !(x > 0 && x < 1) || !std::isfinite(total)) return 0.0 * (x + total);
  if (std::min(a, b) > 1e9) {
    // The sample is mean + z sqrt(mean (1 - mean) / (total + 1)), of a normal z.
    const double mean = a / total;
    const double slope = b / total / total + (x - mean) / 2 * (1 / a - 2 / total - 1 / (total + 1));
    return slope / (1 - x);
  }
  if (x * total <= a) {
    const auto [u, du] = sums([&](double n) { return x * (total + n) / (a + 1 + n); },
                              [&](double n) { return 1 / (total + n) - 1 / (a + 1 + n); });
    return -x / a * ((std::log(x) + psi(total) - psi(1 + a)) * (1 + u) + du);
  }
  // Uses the series of 1 - x, which is shorter here.
  const double y = 1 - x;
  const auto [u, du] = sums([&](double n) { return y * (total + n) / (b + 1 + n); },
                            [&](double n) { return 1 / (total + n); });
  return x / b * ((std::log1p(-y) + psi(total) - psi(1 + a) + 1 / a) * (1 + u) + du);
}

}  // namespace

namespace native {

Tensor standard_gamma_grad(const Tensor& self, const Tensor& output) {
  const char* op = "_standard_gamma_grad";
  const Dims shape = broadcast(op, "output", self.sizes(), output.sizes());
  LAMELLA_CHECK_NOT_IMPLEMENTED(self.is_floating_point() && output.is_floating_point(), op,
                                ": expected floating-point numbers, got ", self.scalar_type(),
                                " and ", output.scalar_type());
  if (self.is_meta()) return lamella::empty(shape, self.options());
  const Tensor as = self.expand(shape).to(kDouble).contiguous();
  const Tensor xs = output.expand(shape).to(kDouble).contiguous();
  const Tensor result = lamella::empty(shape, as.options());
  const auto *a = as.const_data_ptr<double>(), *x = xs.const_data_ptr<double>();
  auto* out = result.mutable_data_ptr<double>();
  in_parallel(result.numel(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = gamma_slope(a[i], x[i]);
  });
  return result.to(self.scalar_type());
}

Tensor dirichlet_grad(const Tensor& x, const Tensor& alpha, const Tensor& total) {
  const char* op = "_dirichlet_grad";
  Dims shape = broadcast(op, "alpha", x.sizes(), alpha.sizes());
  shape = broadcast(op, "total", shape, total.sizes());
  for (const Tensor& t : {x, alpha, total}) {
    LAMELLA_CHECK_NOT_IMPLEMENTED(t.is_floating_point(), op,
                                  ": expected floating-point numbers, got ", t.scalar_type());
  }
  if (x.is_meta()) return lamella::empty(shape, x.options());
  auto dense = [&](const Tensor& t) { return t.expand(shape).to(kDouble).contiguous(); };
  const Tensor xs = dense(x), as = dense(alpha), totals = dense(total);
  const Tensor result = lamella::empty(shape, xs.options());
  const auto *at = xs.const_data_ptr<double>(), *a = as.const_data_ptr<double>(),
             *sum = totals.const_data_ptr<double>();
  auto* out = result.mutable_data_ptr<double>();
  in_parallel(result.numel(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = beta_slope(at[i], a[i], sum[i]);
  });
  return result.to(x.scalar_type());
}

}  // namespace native

Tensor sample_dirichlet_backward(const Tensor& grad, const Tensor& alpha, const Tensor& x) {
  const Tensor total = alpha.sum(IntArrayRef(int64_t{-1}), true).expand(alpha.sizes());
  const Tensor slope = aten::_dirichlet_grad(x, alpha, total);
  return slope * (grad - (x * grad).sum(IntArrayRef(int64_t{-1}), true));
}

}  // namespace aten
