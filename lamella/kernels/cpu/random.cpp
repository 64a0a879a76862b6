// Random numbers on the CPU, with the same stream and conventions as PyTorch's.
#include <cmath>
#include <limits>
#include <mutex>

#include "lamella/core/generator_impl.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/visit_dtype.h"

namespace lamella::native {

namespace {

using MaybeGenerator = const std::optional<Generator>&;

CpuGenerator& choose(MaybeGenerator generator) {
  return cpu_generator_or_default(generator ? *generator : Generator());
}

// f(pointer, count) over the elements in the order they lie in memory; through a contiguous tensor
// where there are gaps. The generator is locked meanwhile.
template <class T, class F>
Tensor& draw(Tensor& self, CpuGenerator& generator, F&& f) {
  std::lock_guard<std::mutex> lock(generator.mutex);
  if (self.is_non_overlapping_and_dense()) {
    f(self.mutable_data_ptr<T>(), self.numel());
    return self;
  }
  Tensor dense = new_tensor(self.sizes(), self.scalar_type(), kCPU);
  f(dense.mutable_data_ptr<T>(), dense.numel());
  return self.copy_(dense);
}

// In [0, 1); small types round a float.
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
template <class T>
void box_muller_16(T* data, double mean, double std) {
  using C = compute_type<T>;
  for (int j = 0; j < 8; ++j) {
    C u1 = C(1) - static_cast<C>(data[j]);
    C u2 = static_cast<C>(data[j + 8]);
    C radius = std::sqrt(C(-2) * std::log(u1));
    C theta = C(2.0 * 3.14159265358979323846) * u2;
    data[j] = static_cast<T>(radius * std::cos(theta) * static_cast<C>(std) + static_cast<C>(mean));
    data[j + 8] =
        static_cast<T>(radius * std::sin(theta) * static_cast<C>(std) + static_cast<C>(mean));
  }
}

template <class T>
void fill_normal(T* data, int64_t n, double mean, double std, bool blocks,
                 CpuGenerator& generator) {
  if (!blocks) {
    for (int64_t i = 0; i < n; ++i) {
      data[i] = static_cast<T>(generator.normal_double() * std + mean);
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) data[i] = static_cast<T>(uniform<T>(generator));
  for (int64_t i = 0; i + 16 <= n; i += 16) box_muller_16(data + i, mean, std);
  if (n % 16 != 0) {  // the last sixteen are drawn anew
    T* last = data + n - 16;
    for (int i = 0; i < 16; ++i) last[i] = static_cast<T>(uniform<T>(generator));
    box_muller_16(last, mean, std);
  }
}

}  // namespace

Tensor& uniform_(Tensor& self, double from, double to, std::optional<Generator> generator) {
  LAMELLA_CHECK(from <= to, "uniform_: expected 'from' of at most 'to', got ", from, " and ", to);
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
  return visit_floating(self.scalar_type(), "uniform_", [&](auto tag) -> Tensor& {
    using T = type_of<decltype(tag)>;
    using C = compute_type<T>;
    C low = static_cast<C>(from), span = static_cast<C>(to) - static_cast<C>(from);
    return draw<T>(self, source, [&](T* data, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        T value = static_cast<T>(uniform<T>(source) * span + low);
        data[i] = value;
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
  if (self.is_complex()) {  // the variance is shared by both parts
    Tensor parts = lamella::view_as_real(self);
    native::normal_(parts, 0, std / std::sqrt(2.0), generator);
    if (mean != 0) self.add_(mean);
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
Tensor& random_between(const char* op, Tensor& self, int64_t from, uint64_t range,
                       MaybeGenerator generator) {
  if (self.is_meta() || self.numel() == 0) return self;
  CpuGenerator& source = choose(generator);
  return visit_real(self.scalar_type(), op, [&](auto tag) -> Tensor& {
    using T = type_of<decltype(tag)>;
    return draw<T>(self, source, [&](T* data, int64_t n) {
      for (int64_t i = 0; i < n; ++i) data[i] = static_cast<T>(source.uniform_int(from, range));
    });
  });
}
// Largest integer that random_ without bounds may draw.
uint64_t largest_random(ScalarType dtype) {
  switch (dtype) {
    case kBool:
      return 1;
    case kByte:
      return 255;
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

Tensor& random_(Tensor& self, int64_t from, std::optional<int64_t> to,
                std::optional<Generator> generator) {
  if (to) {
    LAMELLA_CHECK(from < *to, "random_: expected 'from' to be below 'to', got ", from, " and ",
                  *to);
    return random_between("random_", self, from,
                          static_cast<uint64_t>(*to) - static_cast<uint64_t>(from), generator);
  }
  uint64_t most = largest_random(self.scalar_type());
  return random_between("random_", self, from, most - static_cast<uint64_t>(from) + 1, generator);
}
Tensor& random_(Tensor& self, int64_t to, std::optional<Generator> generator) {
  return native::random_(self, 0, to, generator);
}
Tensor& random_(Tensor& self, std::optional<Generator> generator) {
  if (self.is_meta() || self.numel() == 0) return self;
  CpuGenerator& source = choose(generator);
  uint64_t count = largest_random(self.scalar_type()) + 1;
  bool wide = self.scalar_type() == kLong || self.scalar_type() == kDouble;
  return visit_real(self.scalar_type(), "random_", [&](auto tag) -> Tensor& {
    using T = type_of<decltype(tag)>;
    return draw<T>(self, source, [&](T* data, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        uint64_t bits = wide ? source.random64() : source.random();
        data[i] = static_cast<T>(static_cast<int64_t>(bits % count));
      }
    });
  });
}

Tensor& bernoulli_(Tensor& self, double p, std::optional<Generator> generator) {
  LAMELLA_CHECK(p >= 0 && p <= 1, "bernoulli_: expected 'p' in [0, 1], got ", p);
  if (self.is_meta() || self.numel() == 0) return self;
  CpuGenerator& source = choose(generator);
  return visit_real(self.scalar_type(), "bernoulli_", [&](auto tag) -> Tensor& {
    using T = type_of<decltype(tag)>;
    return draw<T>(self, source, [&](T* data, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        data[i] = static_cast<T>(source.uniform_double() < p ? 1 : 0);
      }
    });
  });
}
Tensor& bernoulli_(Tensor& self, const Tensor& p, std::optional<Generator> generator) {
  LAMELLA_CHECK(p.is_floating_point(), "bernoulli_: expected 'p' to be floating point, got ",
                p.scalar_type());
  LAMELLA_CHECK(is_expandable(p.sizes(), self.sizes()),
                "bernoulli_: expected 'p' to be broadcastable to ", self.sizes(), ", got ",
                p.sizes());
  if (self.is_meta() || self.numel() == 0) return self;
  bool wide = p.scalar_type() == kDouble;
  Tensor chances = p.to(kDouble).expand(self.sizes()).contiguous();
  Tensor drawn = new_tensor(self.sizes(), kDouble, kCPU);
  CpuGenerator& source = choose(generator);
  {
    std::lock_guard<std::mutex> lock(source.mutex);
    const double* chance = chances.const_data_ptr<double>();
    double* to = drawn.mutable_data_ptr<double>();
    for (int64_t i = 0, n = drawn.numel(); i < n; ++i) {
      LAMELLA_CHECK(chance[i] >= 0 && chance[i] <= 1, "bernoulli_: expected 'p' in [0, 1], got ",
                    chance[i]);
      double u = wide ? source.uniform_double() : static_cast<double>(source.uniform_float());
      to[i] = u < chance[i] ? 1 : 0;
    }
  }
  return self.copy_(drawn);
}
Tensor bernoulli(const Tensor& self, std::optional<Generator> generator) {
  Tensor result = lamella::empty_like(self);
  return result.bernoulli_(self, generator);
}
Tensor& bernoulli_out(const Tensor& self, std::optional<Generator> generator, Tensor& out) {
  resize_output(out, self.sizes());
  return out.bernoulli_(self, generator);
}
Tensor bernoulli(const Tensor& self, double p, std::optional<Generator> generator) {
  Tensor result = lamella::empty_like(self);
  return result.bernoulli_(p, generator);
}

Tensor& exponential_(Tensor& self, double lambd, std::optional<Generator> generator) {
  LAMELLA_CHECK(lambd > 0, "exponential_: expected 'lambd' above 0, got ", lambd);
  if (self.is_meta() || self.numel() == 0) return self;
  CpuGenerator& source = choose(generator);
  return visit_floating(self.scalar_type(), "exponential_", [&](auto tag) -> Tensor& {
    using T = type_of<decltype(tag)>;
    return draw<T>(self, source, [&](T* data, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        data[i] = static_cast<T>(-std::log1p(-source.uniform_double()) / lambd);
      }
    });
  });
}

Tensor& randperm_out(int64_t n, std::optional<Generator> generator, Tensor& out) {
  LAMELLA_CHECK(n >= 0, "randperm: expected 'n' of at least 0, got ", n);
  resize_output(out, {n});
  if (out.is_meta() || n == 0) return out;
  CpuGenerator& source = choose(generator);
  return visit_numbers(out.scalar_type(), "randperm", [&](auto tag) -> Tensor& {
    using T = type_of<decltype(tag)>;
    if constexpr (is_complex_type_v<T>) {
      detail::throw_dtype("randperm", out.scalar_type());
    } else {
      return draw<T>(out, source, [&](T* data, int64_t count) {
        for (int64_t i = 0; i < count; ++i) data[i] = static_cast<T>(i);
        bool wide = count >= static_cast<int64_t>(UINT32_MAX) / 20;
        for (int64_t i = 0; i + 1 < count; ++i) {
          uint64_t bits = wide ? source.random64() : source.random();
          auto other = i + static_cast<int64_t>(bits % static_cast<uint64_t>(count - i));
          T held = data[i];
          data[i] = data[other];
          data[other] = held;
        }
      });
    }
  });
}
Tensor& randperm_out(int64_t n, Tensor& out) { return native::randperm_out(n, std::nullopt, out); }

}  // namespace lamella::native
