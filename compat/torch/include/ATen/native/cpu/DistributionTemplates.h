// Kernels that fill tensors of the CPU with numbers of a generator of any class: uniform_kernel(it,
// from, to, generator) and, for a Generator of the class, UniformKernel<RNG>()(it, from, to,
// handle).
#pragma once
#include <ATen/ATen.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/DistributionsHelper.h>

namespace at::native::templates::cpu {

// Draws an element after the other; `draw` is called with a number of the elements' type.
template <class T, class RNG, class F>
void draw_each(TensorIteratorBase& it, RNG* generator, F& draw) {
  std::lock_guard lock(generator->mutex_);
  it.for_each(
      [&](char** data, const int64_t* strides, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          *reinterpret_cast<T*>(data[0] + strides[0] * i) = static_cast<T>(draw(T()));
        }
      },
      INT64_MAX);
}
template <class RNG, class F>
void draw_floating(TensorIteratorBase& it, RNG* generator, F&& draw) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, it.dtype(), "random kernel",
                                  [&] { draw_each<scalar_t>(it, generator, draw); });
}
template <class RNG, class F>
void draw_any(TensorIteratorBase& it, RNG* generator, F&& draw) {
  AT_DISPATCH_ALL_TYPES_AND3(kHalf, kBFloat16, kBool, it.dtype(), "random kernel",
                             [&] { draw_each<scalar_t>(it, generator, draw); });
}

template <class RNG>
void random_from_to_kernel(TensorIteratorBase& it, uint64_t range, int64_t base, RNG* generator) {
  draw_any(it, generator,
           [&]<class T>(T) { return uniform_int_from_to_distribution<T>(range, base)(generator); });
}
template <class RNG>
void random_full_64_bits_range_kernel(TensorIteratorBase& it, RNG* generator) {
  draw_any(it, generator,
           [&]<class T>(T) { return uniform_int_full_range_distribution<T>()(generator); });
}
template <class RNG>
void random_kernel(TensorIteratorBase& it, RNG* generator) {
  draw_any(it, generator, [&]<class T>(T) { return uniform_int_distribution<T>()(generator); });
}
template <class RNG>
void normal_kernel(const TensorBase& self, double mean, double deviation, RNG* generator) {
  auto it = TensorIterator::borrowing_nullary_op(self);
  normal_distribution<double> normal(mean, deviation);
  draw_floating(it, generator, [&](auto) { return normal(generator); });
}
template <class RNG>
void uniform_kernel(TensorIteratorBase& it, double from, double to, RNG* generator) {
  draw_floating(it, generator, [&]<class T>(T) {
    return uniform_real_distribution<T>(static_cast<T>(from), static_cast<T>(to))(generator);
  });
}
template <class RNG>
void cauchy_kernel(TensorIteratorBase& it, double median, double sigma, RNG* generator) {
  draw_floating(it, generator,
                [&](auto) { return cauchy_distribution<double>{median, sigma}(generator); });
}
template <class RNG>
void log_normal_kernel(TensorIteratorBase& it, double mean, double deviation, RNG* generator) {
  lognormal_distribution<double> log_normal(mean, deviation);
  draw_floating(it, generator, [&](auto) { return log_normal(generator); });
}
template <class RNG>
void geometric_kernel(TensorIteratorBase& it, double p, RNG* generator) {
  draw_any(it, generator, [&](auto) { return geometric_distribution<double>{p}(generator); });
}
template <class RNG>
void exponential_kernel(TensorIteratorBase& it, double lambda, RNG* generator) {
  draw_floating(it, generator,
                [&](auto) { return exponential_distribution<double>{lambda}(generator); });
}
template <class RNG>
void bernoulli_kernel(const TensorBase& self, double p, RNG* generator) {
  auto it = TensorIterator::borrowing_nullary_op(self);
  draw_any(it, generator, [&](auto) { return bernoulli_distribution<double>(p)(generator); });
}
// `probabilities` is broadcast to `self`.
template <class RNG>
void bernoulli_kernel(const TensorBase& self, const TensorBase& probabilities, RNG* generator) {
  const Tensor p = Tensor(probabilities).to(kCPU, kDouble).expand(self.sizes()).contiguous();
  const double* next = p.const_data_ptr<double>();
  Tensor drawn = at::empty(self.sizes(), Tensor(self).options());
  auto it = TensorIterator::borrowing_nullary_op(drawn);
  draw_any(it, generator, [&](auto) { return bernoulli_distribution<double>(*next++)(generator); });
  Tensor(self).copy_(drawn);
}

// An argument of a kernel: a handle as an object of the generator's class.
template <class RNG, class T>
const T& argument(const T& given) {
  return given;
}
template <class RNG>
RNG* argument(const std::optional<Generator>& generator) {
  return check_generator<RNG>(generator);
}
#define LAMELLA_RANDOM_KERNEL(Name, function)         \
  template <class RNG>                                \
  struct Name {                                       \
    void operator()(auto& to, const auto&... given) { \
      function(to, cpu::argument<RNG>(given)...);     \
    }                                                 \
  };
LAMELLA_RANDOM_KERNEL(RandomKernel, random_kernel)
LAMELLA_RANDOM_KERNEL(NormalKernel, normal_kernel)
LAMELLA_RANDOM_KERNEL(UniformKernel, uniform_kernel)
LAMELLA_RANDOM_KERNEL(CauchyKernel, cauchy_kernel)
LAMELLA_RANDOM_KERNEL(LogNormalKernel, log_normal_kernel)
LAMELLA_RANDOM_KERNEL(GeometricKernel, geometric_kernel)
LAMELLA_RANDOM_KERNEL(ExponentialKernel, exponential_kernel)
LAMELLA_RANDOM_KERNEL(BernoulliKernel, bernoulli_kernel)
#undef LAMELLA_RANDOM_KERNEL
template <class RNG>
struct RandomFromToKernel {
  void operator()(TensorIteratorBase& it, uint64_t range, int64_t base,
                  const std::optional<Generator>& generator) {
    random_from_to_kernel(it, range, base, check_generator<RNG>(generator));
  }
  void operator()(TensorIteratorBase& it, const std::optional<Generator>& generator) {
    random_full_64_bits_range_kernel(it, check_generator<RNG>(generator));
  }
};

}  // namespace at::native::templates::cpu
