// Distributions of numbers that generators of a class of their own draw: random() gives 32 random
// bits, random64() 64.
#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/TransformationHelper.h>
#include <c10/util/Exception.h>

namespace at {

// An integer in [base, base + range).
template <class T>
struct uniform_int_from_to_distribution {
  uniform_int_from_to_distribution(uint64_t range, int64_t base) : range_(range), base_(base) {}
  template <class RNG>
  T operator()(RNG generator) {
    if (range_ >= uint64_t{1} << 32) {
      return transformation::uniform_int_from_to<T>(generator->random64(), range_, base_);
    }
    return transformation::uniform_int_from_to<T>(generator->random(), range_, base_);
  }
  uint64_t range_;
  int64_t base_;
};
// Any int64_t.
template <class T>
struct uniform_int_full_range_distribution {
  template <class RNG>
  T operator()(RNG generator) {
    return static_cast<T>(static_cast<int64_t>(generator->random64()));
  }
};
// An integer from 0 to the largest one of T.
template <class T>
struct uniform_int_distribution {
  template <class RNG>
  T operator()(RNG generator) {
    if constexpr (sizeof(T) == 8) return transformation::uniform_int<T>(generator->random64());
    return transformation::uniform_int<T>(generator->random());
  }
};
template <class T>
struct uniform_real_distribution {
  uniform_real_distribution(T from, T to) : from_(from), to_(to) {
    TORCH_CHECK(from <= to, "uniform_real_distribution: expected from <= to, got ", from, " and ",
                to);
  }
  template <class RNG>
  opmath_type<T> operator()(RNG generator) {
    if constexpr (sizeof(T) == 8) {
      return transformation::uniform_real<T>(generator->random64(), from_, to_);
    }
    return transformation::uniform_real<T>(generator->random(), from_, to_);
  }
  T from_, to_;
};
// By the Box-Muller transform. The generator keeps the second number of a pair, if it can.
template <class T>
struct normal_distribution {
  normal_distribution(T mean, T deviation) : mean_(mean), deviation_(deviation) {
    TORCH_CHECK(deviation >= 0, "normal_distribution: expected a deviation >= 0, got ", deviation);
  }
  template <class RNG>
  opmath_type<T> operator()(RNG generator) {
    using R = opmath_type<T>;
    if constexpr (requires { generator->next_double_normal_sample(); }) {
      if (auto kept = generator->next_double_normal_sample()) {
        generator->set_next_double_normal_sample(std::nullopt);
        return transformation::normal<R>(static_cast<R>(*kept), mean_, deviation_);
      }
    }
    uniform_real_distribution<T> uniform(0, 1);
    const R angle = R(2 * 3.14159265358979323846) * uniform(generator);
    const R radius = std::sqrt(R(-2) * std::log1p(-uniform(generator)));
    if constexpr (requires { generator->next_double_normal_sample(); }) {
      generator->set_next_double_normal_sample(radius * std::sin(angle));
    }
    return transformation::normal<R>(radius * std::cos(angle), mean_, deviation_);
  }
  T mean_, deviation_;
};
// 1 with probability p.
template <class T>
struct bernoulli_distribution {
  explicit bernoulli_distribution(T p) : p_(p) {
    TORCH_CHECK(0 <= p && p <= 1, "bernoulli_distribution: expected p from 0 to 1, got ", p);
  }
  template <class RNG>
  T operator()(RNG generator) {
    uniform_real_distribution<T> uniform(0, 1);
    return transformation::bernoulli<T>(uniform(generator), p_);
  }
  T p_;
};
// What the functions of at::transformation make of a uniform number.
#define LAMELLA_OF_UNIFORM(name, ...)                                                \
  template <class T>                                                                 \
  struct name##_distribution {                                                       \
    template <class RNG>                                                             \
    T operator()(RNG generator) {                                                    \
      uniform_real_distribution<T> uniform(0, 1);                                    \
      return transformation::name<T>(uniform(generator) __VA_OPT__(, ) __VA_ARGS__); \
    }
LAMELLA_OF_UNIFORM(cauchy, median_, sigma_)
T median_, sigma_;
};
LAMELLA_OF_UNIFORM(exponential, lambda_)
T lambda_;
}
;
LAMELLA_OF_UNIFORM(geometric, p_)
T p_;
}
;
#undef LAMELLA_OF_UNIFORM
template <class T>
struct lognormal_distribution : normal_distribution<T> {
  using normal_distribution<T>::normal_distribution;
  template <class RNG>
  T operator()(RNG generator) {
    return std::exp(normal_distribution<T>::operator()(generator));
  }
};

}  // namespace at
