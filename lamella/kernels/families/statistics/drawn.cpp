// Random numbers from distributions whose parameters are tensors, with PyTorch's stream and
// algorithms.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lamella/abi/backend.h"
#include "lamella/core/generator_impl.h"
#include "lamella/core/interrupt.h"
#include "lamella/kernels/families/families.h"

namespace aten::native {
namespace {

// Uniform numbers of [0, 1) with 53 random bits.
class Uniform {
 public:
  explicit Uniform(const std::optional<Generator>& generator)
      : from_(generator.value_or(Generator())) {
    if (from_.defined()) return;
    lamella_object* object = nullptr;
    lamella::detail::check(
        lamella_generator_default(static_cast<uint8_t>(DeviceType::CPU), 0, &object));
    from_ = Generator::adopt(object);
  }
  // States how many numbers will be used at least, after the next one; as many may be drawn ahead.
  void expect(int64_t more) { more_ = more; }
  double operator()() {
    if (at_ == filled_) {
      filled_ = std::min(kAhead, 1 + more_);
      lamella::detail::check(
          lamella_generator_draw(from_.get(), ahead_, static_cast<uint64_t>(filled_)));
      at_ = 0;
    }
    return static_cast<double>(ahead_[at_++] & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
  }

 private:
  static constexpr int64_t kAhead = 256;
  Generator from_;
  int64_t more_ = 0, at_ = 0, filled_ = 0;
  uint64_t ahead_[kAhead];
};

// For small rates, the count of uniform numbers whose product stays above e^-rate. For others:
// W. Hörmann, The transformed rejection method for generating Poisson random variables, Insurance:
// Mathematics and Economics 12 (1993) 39, algorithm PTRS.
double draw_poisson(double rate, Uniform& uniform) {
  if (rate == 0) return 0;
  if (rate < 10) {
    const double least = std::exp(-rate);
    double count = 0;
    for (double product = uniform(); product > least; product *= uniform()) ++count;
    return count;
  }
  const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), bound = 0.9277 - 3.6224 / (b - 2);
  const double log_rate = std::log(rate);
  while (true) {
    const double u = uniform() - 0.5, v = uniform(), us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= bound) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
        k * log_rate - rate - std::lgamma(k + 1)) {
      return k;
    }
  }
}

// The error of Stirling's formula for log(k!).
double stirling_rest(double k) {
  if (k < 10) {
    return std::lgamma(k + 1) - (0.91893853320467274178 + (k + 0.5) * std::log(k + 1) - (k + 1));
  }
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// If few successes are expected, adds up the geometric waiting times between them. Otherwise:
// W. Hörmann, The generation of binomial random variates, Journal of Statistical Computation and
// Simulation 46 (1993) 101, algorithm BTRS. `p` is at most a half.
double draw_successes(double n, double p, Uniform& uniform) {
  if (n * p < 10) {
    const double log_failure = std::log1p(-p);
    double count = 0, waited = 0;
    while (true) {
      waited += std::ceil(std::log(uniform()) / log_failure);
      if (waited > n) return count;
      ++count;
    }
  }
  const double deviation = std::sqrt(n * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = n * p + 0.5, bound = 0.92 - 4.2 / b, odds = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation, m = std::floor((n + 1) * p);
  while (true) {
    const double u = uniform() - 0.5;
    double v = uniform();
    const double us = 0.5 - std::abs(u), k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= bound) return k;
    if (k < 0 || k > n) continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double most = (m + 0.5) * std::log((m + 1) / (odds * (n - m + 1))) +
                        (n + 1) * std::log((n - m + 1) / (n - k + 1)) +
                        (k + 0.5) * std::log(odds * (n - k + 1) / (k + 1)) + stirling_rest(m) +
                        stirling_rest(n - m) - stirling_rest(k) - stirling_rest(n - k);
    if (v <= most) return k;
  }
}

double draw_binomial(double n, double p, Uniform& uniform) {
  if (std::isnan(n) || std::isnan(p)) return std::numeric_limits<double>::quiet_NaN();
  if (n <= 0 || p <= 0) return 0;
  if (p >= 1) return n;
  return p <= 0.5 ? draw_successes(n, p, uniform) : n - draw_successes(n, 1 - p, uniform);
}

// Marsaglia and Tsang, A simple method for generating gamma variables, ACM Transactions on
// Mathematical Software 26 (2000) 363. Shapes below 1 are drawn with shape + 1 and scaled down.
double draw_gamma(double shape, Uniform& uniform, CpuGenerator& generator) {
  double scale = 1;
  if (shape < 1) {
    if (shape == 0) return 0;
    scale = std::pow(1 - uniform(), 1 / shape);
    shape += 1;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    double x = 0, y = 0;
    do {
      x = generator.normal_double();
      y = 1 + c * x;
    } while (y <= 0);
    const double v = y * y * y, u = 1 - uniform(), square = x * x;
    if (u < 1 - 0.0331 * square * square ||
        std::log(u) < 0.5 * square + d * (1 - v + std::log(v))) {
      return scale * d * v;
    }
  }
}

// Draws one number for each shape, in double precision.
Tensor draw_gammas(const char* op, const Tensor& self, const std::optional<Generator>& generator) {
  LAMELLA_CHECK_NOT_IMPLEMENTED(self.is_floating_point(), op,
                                ": expected 'self' to be floating point, got ", self.scalar_type());
  const Tensor shapes = self.to(kDouble).contiguous();
  const Tensor result = lamella::empty(self.sizes(), shapes.options());
  const auto* shape = shapes.const_data_ptr<double>();
  auto* out = result.mutable_data_ptr<double>();
  for (int64_t i = 0; i < self.numel(); ++i) {
    LAMELLA_CHECK(shape[i] >= 0 && std::isfinite(shape[i]), op,
                  ": expected the elements of 'self' to be finite and at least 0, got ", shape[i]);
  }
  Uniform uniform(generator);
  CpuGenerator& from = cpu_generator_or_default(generator.value_or(Generator()));
  for (int64_t i = 0; i < self.numel(); ++i) {
    if (i % 65536 == 65535) check_interrupt();
    out[i] = draw_gamma(shape[i], uniform, from);
  }
  return result;
}

// The smallest positive normal number of a dtype, and the largest number below 1.
std::pair<double, double> open_interval(ScalarType type) {
  switch (type) {
    case kDouble:
      return {std::numeric_limits<double>::min(), 1 - 0x1p-53};
    case kHalf:
      return {0x1p-14, 1 - 0x1p-11};
    case kBFloat16:
      return {std::numeric_limits<float>::min(), 1 - 0x1p-8};
    default:
      return {std::numeric_limits<float>::min(), 1 - 0x1p-24};
  }
}

}  // namespace

Tensor standard_gamma(const Tensor& self, std::optional<Generator> generator) {
  if (self.is_meta()) return lamella::empty(self.sizes(), self.options());
  const Tensor drawn = draw_gammas("_standard_gamma", self, generator);
  const ScalarType type = self.scalar_type();
  return drawn.to(type).clamp_min(open_interval(type).first);
}

Tensor sample_dirichlet(const Tensor& self, std::optional<Generator> generator) {
  const char* op = "_sample_dirichlet";
  LAMELLA_CHECK(self.dim() > 0, op,
                ": expected 'self' to have at least 1 dimension, got a tensor with 0");
  if (self.is_meta()) return lamella::empty(self.sizes(), self.options());
  // Numbers that all underflow to 0 are treated as equal.
  const Tensor drawn =
      draw_gammas(op, self, generator).clamp_min(std::numeric_limits<double>::min());
  const auto [low, high] = open_interval(self.scalar_type());
  return drawn.div(drawn.sum(IntArrayRef(int64_t{-1}), true))
      .clamp(low, high)
      .to(self.scalar_type());
}

Tensor poisson(const Tensor& self, std::optional<Generator> generator) {
  const char* op = "poisson";
  LAMELLA_CHECK_NOT_IMPLEMENTED(self.is_floating_point(), op,
                                ": expected 'self' to be floating point, got ", self.scalar_type());
  if (self.is_meta()) return lamella::empty(self.sizes(), self.options());
  const Tensor rates = self.to(kDouble).contiguous();
  const Tensor result = lamella::empty(self.sizes(), rates.options());
  const auto* rate = rates.const_data_ptr<double>();
  auto* out = result.mutable_data_ptr<double>();
  for (int64_t i = 0; i < self.numel(); ++i) {
    LAMELLA_CHECK(rate[i] >= 0 && std::isfinite(rate[i]), op,
                  ": expected the rates in 'self' to be finite and at least 0, got ", rate[i]);
  }
  Uniform uniform(generator);
  int64_t left = std::count_if(rate, rate + self.numel(), [](double r) { return r > 0; });
  for (int64_t i = 0; i < self.numel(); ++i) {
    if (i % 65536 == 65535) check_interrupt();
    if (rate[i] > 0) uniform.expect(--left);
    out[i] = draw_poisson(rate[i], uniform);
  }
  return result.to(self.scalar_type());
}

Tensor binomial(const Tensor& count, const Tensor& prob, std::optional<Generator> generator) {
  const char* op = "binomial";
  LAMELLA_CHECK_VALUE(count.is_floating_point(), op,
                      ": expected 'count' to be floating point, got ", count.scalar_type());
  LAMELLA_CHECK(prob.scalar_type() == count.scalar_type(), op, ": expected 'prob' to be ",
                count.scalar_type(), ", got ", prob.scalar_type());
  const Dims shape = broadcast(op, "prob", count.sizes(), prob.sizes());
  if (count.is_meta()) return lamella::empty(shape, count.options());
  const Tensor counts = count.expand(shape).to(kDouble).contiguous();
  const Tensor chances = prob.expand(shape).to(kDouble).contiguous();
  const Tensor result = lamella::empty(shape, counts.options());
  const auto *n = counts.const_data_ptr<double>(), *p = chances.const_data_ptr<double>();
  auto* out = result.mutable_data_ptr<double>();
  Uniform uniform(generator);
  for (int64_t i = 0; i < result.numel(); ++i) {
    if (i % 4096 == 4095) check_interrupt();
    out[i] = draw_binomial(n[i], p[i], uniform);
  }
  return result.to(count.scalar_type());
}

}  // namespace aten::native
