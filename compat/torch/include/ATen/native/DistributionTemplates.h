// Operators that draw random numbers, for a generator's class and a kernel: they check arguments,
// prepare outputs and run Kernel<RNG>.
#pragma once
#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/TensorIterator.h>

#include <bit>

namespace at::native::templates {

template <template <class> class Kernel, class RNG, class... A>
Tensor& fill_with(Tensor& self, const A&... arguments) {
  if (self.numel() == 0) return self;
  auto it = TensorIterator::borrowing_nullary_op(self);
  Kernel<RNG>()(it, arguments...);
  return self;
}
#define LAMELLA_CHECK_RANDOM(condition, name, text, value) \
  TORCH_CHECK(condition, name ": expected " text ", got ", value)

template <template <class> class Kernel, class RNG>
Tensor& random_impl(Tensor& self, std::optional<Generator> generator) {
  return fill_with<Kernel, RNG>(self, generator);
}

// The integer next to n, towards +-infinity, that a number with so many binary digits can hold.
inline int64_t representable(int64_t n, int digits, bool upwards) {
  const uint64_t magnitude = n < 0 ? -static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
  const int excess = static_cast<int>(std::bit_width(magnitude)) - digits;
  if (excess <= 0) return n;
  const int64_t step = int64_t{1} << excess, below = n & -step;
  return upwards && below != n ? below + step : below;
}
// Numbers in [from, to); from `from` on where `to` is absent, and any of 64 bits where `from` is
// the lowest.
template <template <class> class Kernel, class RNG>
Tensor& random_from_to_impl(Tensor& self, int64_t from, std::optional<int64_t> to,
                            std::optional<Generator> generator) {
  constexpr int64_t lowest = std::numeric_limits<int64_t>::lowest();
  if (!to.has_value() && from == lowest) return fill_with<Kernel, RNG>(self, generator);
  LAMELLA_CHECK_RANDOM(!to.has_value() || from < *to, "random_", "from < to",
                       lamella::str(from, " and ", *to));
  int64_t last = 0;
  AT_DISPATCH_ALL_TYPES_AND3(kHalf, kBFloat16, kBool, self.scalar_type(), "random_", [&] {
    using Limits = std::numeric_limits<scalar_t>;
    if constexpr (!std::is_integral_v<scalar_t>) {
      const int64_t greatest = int64_t{1} << Limits::digits;
      last = to.has_value() ? *to - 1 : greatest;
      from = representable(from, Limits::digits, true);
      // A bound that rounds to 2^63 stays as it is.
      if (static_cast<double>(static_cast<scalar_t>(last)) < 0x1p63) {
        last = representable(last, Limits::digits, false);
      }
    } else {
      last = to.has_value() ? *to - 1 : static_cast<int64_t>(Limits::max());
      TORCH_CHECK(from >= static_cast<int64_t>(Limits::lowest()) &&
                      last <= static_cast<int64_t>(Limits::max()),
                  "random_: expected bounds that ", self.scalar_type(), " holds, got ", from,
                  " and ", last);
    }
    LAMELLA_CHECK_RANDOM(from <= last, "random_", "from < to as numbers of the tensor's dtype",
                         lamella::str(from, " and ", last));
  });
  const uint64_t range = static_cast<uint64_t>(last) - static_cast<uint64_t>(from) + 1;
  return fill_with<Kernel, RNG>(self, range, from, generator);
}

template <template <class> class Kernel, class RNG>
Tensor& normal_impl_(Tensor& self, double mean, double deviation,
                     std::optional<Generator> generator) {
  LAMELLA_CHECK_RANDOM(deviation >= 0, "normal_", "'std' >= 0", deviation);
  if (self.is_complex()) {  // each part has half of the variance
    Tensor parts = at::view_as_real(self);
    normal_impl_<Kernel, RNG>(parts, 0, deviation / std::sqrt(2.0), generator);
    self.add_(mean);
  } else if (self.numel() != 0) {
    Kernel<RNG>()(self, mean, deviation, generator);
  }
  return self;
}
// The mean, the deviation or both are tensors, which are broadcast.
template <template <class> class Kernel, class RNG, class M, class D>
Tensor& normal_out_impl(Tensor& out, const M& mean, const D& deviation,
                        std::optional<Generator> generator) {
  std::vector<int64_t> sizes;
  if constexpr (std::is_same_v<M, Tensor>) sizes = mean.sizes().vec();
  if constexpr (std::is_same_v<D, Tensor>) {
    LAMELLA_CHECK_RANDOM(deviation.numel() == 0 || deviation.min().ge(0).all().item().toBool(),
                         "normal", "'std' >= 0", "other elements");
    sizes = at::infer_size(sizes, deviation.sizes());
  } else {
    LAMELLA_CHECK_RANDOM(deviation >= 0, "normal", "'std' >= 0", deviation);
  }
  out.resize_(sizes);
  return normal_impl_<Kernel, RNG>(out, 0, 1, generator).mul_(deviation).add_(mean);
}
template <template <class> class Kernel, class RNG, class M, class D>
Tensor normal_impl(const M& mean, const D& deviation, std::optional<Generator> generator) {
  Tensor out;
  if constexpr (std::is_same_v<M, Tensor>) {
    out = at::empty({0}, mean.options());
  } else {
    out = at::empty({0}, deviation.options());
  }
  return normal_out_impl<Kernel, RNG>(out, mean, deviation, generator);
}

template <template <class> class Kernel, class RNG>
Tensor& uniform_impl_(Tensor& self, double from, double to, std::optional<Generator> generator) {
  LAMELLA_CHECK_RANDOM(from <= to, "uniform_", "from <= to", lamella::str(from, " and ", to));
  if (!self.is_complex()) return fill_with<Kernel, RNG>(self, from, to, generator);
  Tensor parts = at::view_as_real(self);
  fill_with<Kernel, RNG>(parts, from, to, generator);
  return self;
}
template <template <class> class Kernel, class RNG>
Tensor& log_normal_impl_(Tensor& self, double mean, double deviation,
                         std::optional<Generator> generator) {
  LAMELLA_CHECK_RANDOM(deviation > 0, "log_normal_", "'std' > 0", deviation);
  return fill_with<Kernel, RNG>(self, mean, deviation, generator);
}
template <template <class> class Kernel, class RNG>
Tensor& geometric_impl_(Tensor& self, double p, std::optional<Generator> generator) {
  LAMELLA_CHECK_RANDOM(0 < p && p < 1, "geometric_", "'p' between 0 and 1", p);
  return fill_with<Kernel, RNG>(self, p, generator);
}
template <template <class> class Kernel, class RNG>
Tensor& exponential_impl_(Tensor& self, double lambda, std::optional<Generator> generator) {
  LAMELLA_CHECK_RANDOM(lambda > 0, "exponential_", "'lambd' > 0", lambda);
  return fill_with<Kernel, RNG>(self, lambda, generator);
}
template <template <class> class Kernel, class RNG>
Tensor& cauchy_impl_(Tensor& self, double median, double sigma,
                     std::optional<Generator> generator) {
  LAMELLA_CHECK_RANDOM(sigma > 0, "cauchy_", "'sigma' > 0", sigma);
  return fill_with<Kernel, RNG>(self, median, sigma, generator);
}
// p is a number or a tensor.
template <template <class> class Kernel, class RNG, class P>
Tensor& bernoulli_impl_(Tensor& self, const P& p, std::optional<Generator> generator) {
  if constexpr (!std::is_same_v<P, Tensor>) {
    LAMELLA_CHECK_RANDOM(0 <= p && p <= 1, "bernoulli_", "'p' from 0 to 1", p);
  }
  if (self.numel() != 0) Kernel<RNG>()(self, p, generator);
  return self;
}
template <template <class> class Kernel, class RNG>
Tensor& bernoulli_out_impl(Tensor& result, const Tensor& self, std::optional<Generator> generator) {
  result.resize_(self.sizes());
  return bernoulli_impl_<Kernel, RNG>(result, self, generator);
}
#undef LAMELLA_CHECK_RANDOM

}  // namespace at::native::templates
