// Random numbers on the CPU, with the same stream and conventions as PyTorch's.
#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "lamella/core/generator_impl.h"
#include "lamella/core/interrupt.h"
#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/convert.h"
#include "lamella/kernels/cpu/simd/random.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

namespace {

using MaybeGenerator = const std::optional<Generator>&;

CpuGenerator& choose(MaybeGenerator generator) {
  return cpu_generator_or_default(generator ? *generator : Generator());
}

// Calls f(pointer, count) over the elements in memory order, with a contiguous temporary if there
// are gaps. The generator is locked for one piece of at most kMaxDrawn elements at a time.
constexpr int64_t kMaxDrawn = 1 << 20;  // a multiple of 16
template <class F>
Tensor& draw_bytes(Tensor& self, CpuGenerator& generator, F&& f) {
  bool is_dense = self.is_non_overlapping_and_dense();
  Tensor dense = is_dense ? self : new_tensor(self.sizes(), self.scalar_type(), kCPU);
  char* data = static_cast<char*>(dense.mutable_data_ptr());
  auto bytes = static_cast<int64_t>(dense.element_size());
  for (int64_t begin = 0, n = dense.numel(); begin < n; begin += kMaxDrawn) {
    if (begin != 0) check_interrupt();
    std::lock_guard<std::mutex> lock(generator.mutex);
    f(data + begin * bytes, std::min(kMaxDrawn, n - begin));
    if (n - begin <= kMaxDrawn) break;
  }
  return is_dense ? self : self.copy_(dense);
}
template <class T, class F>
Tensor& draw(Tensor& self, CpuGenerator& generator, F&& f) {
  return draw_bytes(self, generator,
                    [&](char* data, int64_t n) { f(reinterpret_cast<T*>(data), n); });
}

// The first of two words is the high one.
uint64_t joined(const uint32_t* words) { return uint64_t{words[0]} << 32 | words[1]; }

constexpr int64_t kBlock = 512;  // elements that are made together, a multiple of 16

// fill(words, to, count) makes up to kBlock elements of type T from `each` words each; they are
// converted if the tensor has another dtype.
template <class T, class F>
Tensor& draw_blocks(Tensor& self, CpuGenerator& generator, int each, F&& fill) {
  constexpr ScalarType made = CppTypeToScalarType<T>::value;
  ScalarType dtype = self.scalar_type();
  ConvertFn convert = made == dtype ? nullptr : get_convert(made, dtype);
  auto bytes = static_cast<int64_t>(element_size(dtype));
  return draw_bytes(self, generator, [&](char* data, int64_t n) {
    uint32_t words[2 * kBlock];
    T block[kBlock];
    for (int64_t i = 0; i < n; i += kBlock, data += kBlock * bytes) {
      int64_t now = std::min(kBlock, n - i);
      generator.random_words(words, now * each);
      fill(words, convert == nullptr ? reinterpret_cast<T*>(data) : block, now);
      if (convert != nullptr) convert(block, data, now);
    }
  });
}

// A uniform number in [0, 1), drawn as a float for small types.
template <class T>
compute_type<T> uniform(CpuGenerator& generator) {
  if constexpr (std::is_same_v<T, double>) {
    return generator.uniform_double();
  } else {
    return generator.uniform_float();
  }
}

// Sixteen uniform numbers become normal ones by the Box-Muller transform: the first eight give the
// radius, the others the angle.
template <class C>
void box_muller_16(C* data, double mean, double std) {
  for (int j = 0; j < 8; ++j) {
    C radius = std::sqrt(C(-2) * std::log(C(1) - data[j]));
    C theta = C(2.0 * 3.14159265358979323846) * data[j + 8];
    data[j] = radius * std::cos(theta) * static_cast<C>(std) + static_cast<C>(mean);
    data[j + 8] = radius * std::sin(theta) * static_cast<C>(std) + static_cast<C>(mean);
  }
}

template <class T>
void fill_normal(T* data, int64_t n, double mean, double std, bool blocks,
                 CpuGenerator& generator) {
  using C = compute_type<T>;
  if (!blocks) {
    for (int64_t i = 0; i < n; ++i) {
      data[i] = static_cast<T>(generator.normal_double() * std + mean);
    }
    return;
  }
  if constexpr (std::is_same_v<T, float>) {
    const RandomLoops& loops = random_loops_on(kCPU);
    auto m = static_cast<float>(mean), d = static_cast<float>(std);
    uint32_t words[kBlock];
    auto fill = [&](float* to, int64_t count) {
      generator.random_words(words, count);
      loops.uniform_float(words, to, count, 0, 1, 1);
      loops.normal_blocks(to, count / 16, m, d);
    };
    for (int64_t i = 0; i < n; i += kBlock) fill(data + i, std::min(kBlock, n - i));
    if (n % 16 != 0) fill(data + n - 16, 16);  // the last sixteen are drawn anew
  } else if constexpr (std::is_same_v<T, C>) {
    for (int64_t i = 0; i < n; ++i) data[i] = uniform<T>(generator);
    for (int64_t i = 0; i + 16 <= n; i += 16) box_muller_16(data + i, mean, std);
    if (n % 16 != 0) {  // the last sixteen are drawn anew
      T* last = data + n - 16;
      for (int i = 0; i < 16; ++i) last[i] = uniform<T>(generator);
      box_muller_16(last, mean, std);
    }
  } else {
    // A uniform number rounded to a narrow type can be 1, whose logarithm is infinite: narrow types
    // round the normal numbers instead. A last block that is short overwrites what precedes it.
    for (int64_t i = 0; i < n; i += 16) {
      C block[16];
      for (C& number : block) number = uniform<T>(generator);
      box_muller_16(block, mean, std);
      T* to = data + std::min(i, n - 16);
      for (int j = 0; j < 16; ++j) to[j] = static_cast<T>(block[j]);
    }
  }
}

// Converts a number to an integer type, limited to its largest value.
template <class T>
T saturate(double number) {
  if constexpr (std::is_integral_v<T>) {
    constexpr T most = std::numeric_limits<T>::max();
    return number < static_cast<double>(most) ? static_cast<T>(number) : most;
  } else {
    return static_cast<T>(number);
  }
}

// Fills `self` with one next(generator), a double, for each element.
template <class F>
Tensor& draw_each(const char* op, Tensor& self, MaybeGenerator generator, F&& next) {
  if (self.is_meta() || self.numel() == 0) return self;
  CpuGenerator& source = choose(generator);
  return visit_real(self.scalar_type(), op, [&](auto tag) -> Tensor& {
    using T = type_of<decltype(tag)>;
    return draw<T>(self, source, [&](T* data, int64_t n) {
      for (int64_t i = 0; i < n; ++i) data[i] = saturate<T>(next(source));
    });
  });
}
void check_floating(const char* op, const Tensor& self) {
  LAMELLA_CHECK_NOT_IMPLEMENTED(self.is_floating_point() && !is_float8(self.scalar_type()), op,
                                ": expected 'self' to be floating point, got ", self.scalar_type());
}

// The largest finite number of a floating-point type, or of the parts of a complex one.
double largest_finite(ScalarType dtype) {
  switch (dtype) {
    case kHalf:
      return 65504;
    case kBFloat16:
      return 0x1.fep127;
    case kDouble:
    case kComplexDouble:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();
  }
}

}  // namespace

Tensor& uniform_(Tensor& self, double from, double to, std::optional<Generator> generator) {
  LAMELLA_CHECK(from <= to, "uniform_: expected 'from' of at most 'to', got ", from, " and ", to);
  double most = largest_finite(self.scalar_type());
  LAMELLA_CHECK(from >= -most && to <= most && to - from <= most,
                "uniform_: expected 'from', 'to' and ", "'to' - 'from' within ", self.scalar_type(),
                ", got ", from, " and ", to);
  LAMELLA_CHECK_NOT_IMPLEMENTED(self.is_floating_point() || self.is_complex(),
                                "uniform_: expected 'self' to be floating point, got ",
                                self.scalar_type());
  if (self.is_meta() || self.numel() == 0) return self;
  if (self.is_complex()) {
    Tensor parts = lamella::view_as_real(self);
    native::uniform_(parts, from, to, generator);
    return self;
  }
  CpuGenerator& source = choose(generator);
  const RandomLoops& loops = random_loops_on(kCPU);
  // The range excludes `to`. A number that rounds to it is replaced by `from`.
  if (self.scalar_type() == kDouble) {
    return draw_blocks<double>(self, source, 2, [&](const uint32_t* words, double* out, int64_t n) {
      loops.uniform_double(words, out, n, from, to - from, to);
    });
  }
  auto low = static_cast<float>(from), high = static_cast<float>(to), span = high - low;
  if (self.scalar_type() == kFloat) {
    return draw_blocks<float>(self, source, 1, [&](const uint32_t* words, float* out, int64_t n) {
      loops.uniform_float(words, out, n, low, span, high);
    });
  }
  return visit_floating(self.scalar_type(), "uniform_", [&](auto tag) -> Tensor& {
    using T = type_of<decltype(tag)>;
    // A narrow type rounds again.
    T first = static_cast<T>(from), end = static_cast<T>(to);
    return draw_blocks<float>(self, source, 1, [&](const uint32_t* words, float* out, int64_t n) {
      loops.uniform_float(words, out, n, low, span, high);
      for (int64_t i = 0; i < n; ++i) {
        if (static_cast<T>(out[i]) == end) out[i] = static_cast<float>(first);
      }
    });
  });
}

Tensor& normal_(Tensor& self, double mean, double std, std::optional<Generator> generator) {
  LAMELLA_CHECK(std >= 0, "normal_: expected 'std' of at least 0, got ", std);
  LAMELLA_CHECK_NOT_IMPLEMENTED(self.is_floating_point() || self.is_complex(),
                                "normal_: expected 'self' to be floating point, got ",
                                self.scalar_type());
  if (self.is_meta() || self.numel() == 0) return self;
  if (self.is_complex()) {  // the variance is shared by both parts; each has the mean, as in
                            // PyTorch
    Tensor parts = lamella::view_as_real(self);
    native::normal_(parts, mean, std / std::sqrt(2.0), generator);
    return self;
  }
  CpuGenerator& source = choose(generator);
  bool blocks = self.numel() >= 16 && self.is_contiguous();
  return visit_floating(self.scalar_type(), "normal_", [&](auto tag) -> Tensor& {
    using T = type_of<decltype(tag)>;
    return draw<T>(self, source,
                   [&](T* data, int64_t n) { fill_normal<T>(data, n, mean, std, blocks, source); });
  });
}

namespace {
// from + word % range; words have 64 bits if `wide`. A range of 0 means all 2^64 numbers, for which
// words are used directly.
Tensor& draw_remainders(const char* op, Tensor& self, int64_t from, uint64_t range, bool wide,
                        MaybeGenerator generator) {
  if (self.is_meta() || self.numel() == 0) return self;
  if (!is_integral(self.scalar_type(), true)) visit_real(self.scalar_type(), op, [](auto) {});
  auto fill = [&](const uint32_t* words, int64_t* to, int64_t n) {
    if (!wide && range < uint64_t{1} << 28) {
      random_loops_on(kCPU).remainders(words, to, n, from, static_cast<uint32_t>(range));
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      uint64_t word = wide ? joined(words + 2 * i) : words[i];
      to[i] = static_cast<int64_t>(range == 0 ? word : word % range + static_cast<uint64_t>(from));
    }
  };
  return draw_blocks<int64_t>(self, choose(generator), wide ? 2 : 1, fill);
}
Tensor& random_between(const char* op, Tensor& self, int64_t from, uint64_t range,
                       MaybeGenerator generator) {
  bool wide = range == 0 || range >= uint64_t{1} << 28;
  return draw_remainders(op, self, from, range, wide, generator);
}
// Largest integer that random_ without bounds may draw.
uint64_t largest_random(ScalarType dtype) {
  switch (dtype) {
    case kBool:
      return 1;
    case kByte:
      return 255;
    case kUInt16:
    case kUInt32:
      return (uint64_t{1} << (element_size(dtype) * 8)) - 1;
    case kDouble:
      return uint64_t{1} << 53;
    case kFloat:
      return uint64_t{1} << 24;
    case kHalf:
      return uint64_t{1} << 11;
    case kBFloat16:
      return uint64_t{1} << 8;
    default:
      return (uint64_t{1} << (element_size(dtype) * 8 - 1)) - 1;
  }
}
}  // namespace

namespace {
// Throws if the dtype of `self` cannot hold the bound.
void check_bound(const Tensor& self, const char* name, int64_t bound) {
  ScalarType dtype = self.scalar_type();
  bool fits = true;
  if (is_floating_point(dtype)) {
    fits = std::abs(static_cast<double>(bound)) <= largest_finite(dtype);
  } else if (dtype == kBool) {
    fits = bound == 0 || bound == 1;
  } else if (is_integral(dtype, false) && !is_signed_type(dtype)) {
    size_t bits = element_size(dtype) * 8;
    fits = bound >= 0 && (bits == 64 || bound < int64_t{1} << bits);
  } else if (size_t bits = element_size(dtype) * 8; bits < 64) {
    fits = bound >= -(int64_t{1} << (bits - 1)) && bound < int64_t{1} << (bits - 1);
  }
  LAMELLA_CHECK(fits, "random_: expected ", name, " within ", dtype, ", got ", bound);
}
}  // namespace

Tensor& random_(Tensor& self, int64_t from, std::optional<int64_t> to,
                std::optional<Generator> generator) {
  if (to) {
    LAMELLA_CHECK(from < *to, "random_: expected 'from' to be below 'to', got ", from, " and ",
                  *to);
    check_bound(self, "'from'", from);
    check_bound(self, "'to' - 1", *to - 1);
    return random_between("random_", self, from,
                          static_cast<uint64_t>(*to) - static_cast<uint64_t>(from), generator);
  }
  check_bound(self, "'from'", from);
  uint64_t most = largest_random(self.scalar_type());
  LAMELLA_CHECK(from < 0 || static_cast<uint64_t>(from) <= most,
                "random_: expected 'from' of at most ", most, " for ", self.scalar_type(), ", got ",
                from);
  return random_between("random_", self, from, most - static_cast<uint64_t>(from) + 1, generator);
}
Tensor& random_(Tensor& self, int64_t to, std::optional<Generator> generator) {
  return native::random_(self, 0, to, generator);
}
Tensor& random_(Tensor& self, std::optional<Generator> generator) {
  const ScalarType dtype = self.scalar_type();
  bool wide = dtype == kLong || dtype == kUInt64 || dtype == kDouble;
  return draw_remainders("random_", self, 0, largest_random(self.scalar_type()) + 1, wide,
                         generator);
}

Tensor& bernoulli_(Tensor& self, double p, std::optional<Generator> generator) {
  LAMELLA_CHECK(p >= 0 && p <= 1, "bernoulli_: expected 'p' in [0, 1], got ", p);
  if (self.is_meta() || self.numel() == 0) return self;
  visit_real(self.scalar_type(), "bernoulli_", [](auto) {});
  // A number of 53 bits is below p where its integer is below this one.
  auto bound = static_cast<uint64_t>(std::ceil(p * 0x1p53));
  return draw_blocks<bool>(self, choose(generator), 2,
                           [&](const uint32_t* words, bool* to, int64_t n) {
                             random_loops_on(kCPU).below(words, to, n, bound);
                           });
}
Tensor& bernoulli_(Tensor& self, const Tensor& p, std::optional<Generator> generator) {
  LAMELLA_CHECK(p.is_floating_point(), "bernoulli_: expected 'p' to be floating point, got ",
                p.scalar_type());
  LAMELLA_CHECK(is_expandable(p.sizes(), self.sizes()),
                "bernoulli_: expected 'p' to be broadcastable to ", self.sizes(), ", got ",
                p.sizes());
  if (self.is_meta() || self.numel() == 0) return self;
  // The uniform number has the precision of the probability; half types use a float.
  bool wide = p.scalar_type() == kDouble;
  Tensor chances = p.to(wide ? kDouble : kFloat).expand(self.sizes()).contiguous();
  Tensor drawn = new_tensor(self.sizes(), kBool, kCPU);
  CpuGenerator& source = choose(generator);
  const RandomLoops& loops = random_loops_on(kCPU);
  auto fill = [&]<class T>(const T* chance, auto make) {
    for (int64_t i = 0, n = drawn.numel(); i < n; ++i) {
      LAMELLA_CHECK(chance[i] >= 0 && chance[i] <= 1, "bernoulli_: expected 'p' in [0, 1], got ",
                    static_cast<double>(chance[i]));
    }
    draw_blocks<bool>(drawn, source, wide ? 2 : 1, [&](const uint32_t* words, bool* to, int64_t n) {
      T number[kBlock];
      make(words, number, n, T(0), T(1), T(1));
      for (int64_t i = 0; i < n; ++i) to[i] = number[i] < chance[i];
      chance += n;
    });
  };
  wide ? fill(chances.const_data_ptr<double>(), loops.uniform_double)
       : fill(chances.const_data_ptr<float>(), loops.uniform_float);
  return self.copy_(drawn);
}
namespace {
// Numbers are drawn in the order of the indices, whatever the strides of `self` are.
Tensor contiguous_like(const Tensor& self) {
  return lamella::empty_like(self, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                             MemoryFormat::Contiguous);
}
}  // namespace
Tensor bernoulli(const Tensor& self, std::optional<Generator> generator) {
  return contiguous_like(self).bernoulli_(self, generator);
}
Tensor& bernoulli_out(const Tensor& self, std::optional<Generator> generator, Tensor& out) {
  resize_output(out, self.sizes());
  return out.bernoulli_(self, generator);
}
Tensor bernoulli(const Tensor& self, double p, std::optional<Generator> generator) {
  return contiguous_like(self).bernoulli_(p, generator);
}

Tensor& exponential_(Tensor& self, double lambd, std::optional<Generator> generator) {
  LAMELLA_CHECK(lambd > 0, "exponential_: expected 'lambd' above 0, got ", lambd);
  check_floating("exponential_", self);
  if (self.is_meta() || self.numel() == 0) return self;
  // A double has the bits that the C library's logarithm gives; narrower types round them away.
  bool exact = self.scalar_type() == kDouble;
  auto fill = [&](const uint32_t* words, double* to, int64_t n) {
    const RandomLoops& loops = random_loops_on(kCPU);
    loops.uniform_double(words, to, n, 0, 1, 1);
    if (!exact) return loops.exponential(to, n, lambd);
    for (int64_t i = 0; i < n; ++i) to[i] = -std::log1p(-to[i]) / lambd;
  };
  return draw_blocks<double>(self, choose(generator), 2, fill);
}

Tensor& log_normal_(Tensor& self, double mean, double std, std::optional<Generator> generator) {
  LAMELLA_CHECK(std > 0, "log_normal_: expected 'std' to be positive, got ", std);
  check_floating("log_normal_", self);
  return draw_each("log_normal_", self, generator, [=](CpuGenerator& source) {
    return std::exp(source.normal_double() * std + mean);
  });
}

Tensor& cauchy_(Tensor& self, double median, double sigma, std::optional<Generator> generator) {
  LAMELLA_CHECK(sigma > 0, "cauchy_: expected 'sigma' to be positive, got ", sigma);
  check_floating("cauchy_", self);
  return draw_each("cauchy_", self, generator, [=](CpuGenerator& source) {
    return median + sigma * std::tan(3.14159265358979323846 * (source.uniform_double() - 0.5));
  });
}

// The number of trials, each with probability p of success, up to the first success.
Tensor& geometric_(Tensor& self, double p, std::optional<Generator> generator) {
  LAMELLA_CHECK(p > 0 && p < 1, "geometric_: expected 'p' in (0, 1), got ", p);
  return draw_each("geometric_", self, generator, [=](CpuGenerator& source) {
    return std::ceil(std::log(source.uniform_double()) / std::log1p(-p));
  });
}

// The slopes of rrelu in training: 1 for positive elements and NaN; the others are drawn from
// [lower, upper) in the order of the elements.
Tensor _rrelu_slopes(const Tensor& self, double lower, double upper,
                     std::optional<Generator> generator) {
  check_floating("rrelu", self);
  Tensor slopes = new_tensor(self.sizes(), self.scalar_type(), self.device());
  if (self.is_meta() || self.numel() == 0) return slopes;
  Tensor numbers = self.contiguous();
  CpuGenerator& source = choose(generator);
  visit_floating(self.scalar_type(), "rrelu", [&](auto tag) {
    using T = type_of<decltype(tag)>;
    using C = compute_type<T>;
    const T* number = numbers.const_data_ptr<T>();
    draw<T>(slopes, source, [&](T* slope, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        bool drawn = static_cast<C>(*number++) <= 0;
        slope[i] =
            static_cast<T>(drawn ? std::fma(source.uniform_double(), upper - lower, lower) : 1.0);
      }
    });
  });
  return slopes;
}

namespace {
// Draws each row of `out` from the same row of weights: a draw is the first category whose
// cumulative share of the sum is not below a uniform number.
template <class T>
void draw_categories(const Tensor& weights, CpuGenerator& generator, Tensor& out) {
  using C = compute_type<T>;
  int64_t count = weights.size(-1), draws = out.size(-1), rows = out.numel() / draws;
  const T* weight = weights.const_data_ptr<T>();
  int64_t* category = out.mutable_data_ptr<int64_t>();
  std::vector<C> shares(static_cast<size_t>(count));
  for (int64_t row = 0; row < rows; ++row, weight += count) {
    count_steps(count);
    C sum = 0;
    size_t last = 0;  // the last category that can be drawn
    for (size_t i = 0; i < shares.size(); ++i) {
      sum += static_cast<C>(weight[i]);
      shares[i] = sum;
      if (static_cast<C>(weight[i]) > 0) last = i;
    }
    for (C& share : shares) share /= sum;
    for (int64_t drawn = 0; drawn < draws; drawn += kMaxDrawn) {
      if (drawn != 0) check_interrupt();
      std::lock_guard<std::mutex> lock(generator.mutex);
      for (int64_t i = std::min(kMaxDrawn, draws - drawn); i > 0; --i) {
        double u = generator.uniform_double();
        auto at = std::partition_point(shares.begin(), shares.begin() + static_cast<int64_t>(last),
                                       [u](C share) { return static_cast<double>(share) < u; });
        *category++ = at - shares.begin();
      }
      if (draws - drawn <= kMaxDrawn) break;
    }
  }
}
}  // namespace

// Without replacement, or with one draw, each weight is divided by an exponential random number;
// the categories with the largest quotients are the result.
Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement,
                   std::optional<Generator> generator) {
  LAMELLA_CHECK(self.dim() == 1 || self.dim() == 2,
                "multinomial: expected 'self' to have 1 or 2 dimensions, got ", self.sizes());
  LAMELLA_CHECK(self.is_floating_point(), "multinomial: expected 'self' to be floating point, got ",
                self.dtype());
  int64_t count = self.size(-1);
  LAMELLA_CHECK(num_samples > 0 && (replacement || num_samples <= count),
                "multinomial: expected 'num_samples' to be positive",
                replacement ? "" : " and no more than the categories", ", got ", num_samples,
                " of ", count);
  LAMELLA_CHECK(count > 0 && count <= int64_t{1} << 24,
                "multinomial: expected between 1 and 2^24 categories, got ", count);
  Dims shape(self.sizes());
  shape[shape.size() - 1] = num_samples;
  if (self.is_meta() || self.numel() == 0) return new_tensor(shape, kLong, self.device());
  Tensor weights = self.contiguous();
  visit_floating(self.scalar_type(), "multinomial", [&](auto tag) {
    using T = type_of<decltype(tag)>;
    using C = compute_type<T>;
    const T* weight = weights.const_data_ptr<T>();
    for (int64_t i = 0; i < weights.numel(); i += count, weight += count) {
      count_steps(count);
      C sum = 0;
      for (int64_t j = 0; j < count; ++j) {
        auto one = static_cast<C>(weight[j]);
        LAMELLA_CHECK(
            one >= 0 && std::isfinite(one),
            "multinomial: expected the weights in 'self' to be finite and at least 0, got ", one);
        sum += one;
      }
      LAMELLA_CHECK(sum > 0 && std::isfinite(sum),
                    "multinomial: expected the weights in each row of 'self' to have a positive, "
                    "finite sum, got ",
                    sum);
    }
  });
  if (!replacement || num_samples == 1) {
    Tensor waits = lamella::empty_like(self).exponential_(1, generator);
    // A narrow type can round a wait to 0; elements with weight 0 must still have the key 0.
    Tensor order = lamella::where(self.gt(0), self / waits, Scalar(0));
    if (num_samples == 1) return lamella::argmax(order, -1, true);
    return std::get<1>(lamella::topk(order, num_samples, -1, true, true));
  }
  Tensor out = new_tensor(shape, kLong, kCPU);
  CpuGenerator& source = choose(generator);
  visit_floating(self.scalar_type(), "multinomial",
                 [&](auto tag) { draw_categories<type_of<decltype(tag)>>(weights, source, out); });
  return out;
}

Tensor& multinomial_out(const Tensor& self, int64_t num_samples, bool replacement,
                        std::optional<Generator> generator, Tensor& out) {
  LAMELLA_CHECK(out.dtype() == kLong, "multinomial: expected 'out' to have dtype int64, got ",
                out.dtype());
  check_no_internal_overlap("multinomial", "out", out);
  Tensor drawn = lamella::multinomial(self, num_samples, replacement, generator);
  resize_output(out, drawn.sizes());
  return out.copy_(drawn);
}

Tensor& randperm_out(int64_t n, std::optional<Generator> generator, Tensor& out) {
  LAMELLA_CHECK(n >= 0, "randperm: expected 'n' of at least 0, got ", n);
  uint64_t most = largest_random(out.scalar_type());
  LAMELLA_CHECK(n == 0 || static_cast<uint64_t>(n) - 1 <= most,
                "randperm: expected 'n' of at most ", most + 1, " for ", out.scalar_type(),
                ", got ", n);
  check_no_internal_overlap("randperm", "out", out);
  resize_output(out, {n});
  if (out.is_meta() || n == 0) return out;
  CpuGenerator& source = choose(generator);
  return visit_numbers(out.scalar_type(), "randperm", [&](auto tag) -> Tensor& {
    using T = type_of<decltype(tag)>;
    if constexpr (is_complex_type_v<T>) {
      lamella::detail::throw_dtype("randperm", out.scalar_type());
    } else {
      bool wide = n >= static_cast<int64_t>(UINT32_MAX) / 20;
      T* first = nullptr;
      int64_t i = 0;
      return draw<T>(out, source, [&](T* data, int64_t count) {
        if (first == nullptr) {
          first = data;
          for (int64_t j = 0; j < n; ++j) first[j] = static_cast<T>(j);
        }
        // The last element has no later element to be exchanged with.
        uint32_t words[2 * kBlock];
        for (int64_t end = std::min(i + count, n - 1); i < end;) {
          int64_t now = std::min(kBlock, end - i);
          source.random_words(words, wide ? 2 * now : now);
          for (int64_t j = 0; j < now; ++j, ++i) {
            auto left = static_cast<uint64_t>(n - i);
            uint64_t place =
                wide ? joined(words + 2 * j) % left : words[j] % static_cast<uint32_t>(left);
            std::swap(first[i], first[i + static_cast<int64_t>(place)]);
          }
        }
      });
    }
  });
}
Tensor& randperm_out(int64_t n, Tensor& out) { return lamella::randperm_out(out, n, std::nullopt); }

}  // namespace lamella::native
