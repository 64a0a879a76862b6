// at::transformation: random bits and uniform numbers made values of distributions.
#pragma once
#include <ATen/OpMathType.h>
#include <c10/lamella_names.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace at {

namespace transformation {

// A whole number of [base, base + range).
template <class T, class V>
T uniform_int_from_to(V bits, uint64_t range, int64_t base) {
  return static_cast<T>(static_cast<int64_t>(bits % range + static_cast<uint64_t>(base)));
}
// A whole number of all that the type has from 0 on; of those it has exactly for floating types.
template <class T, class V>
T uniform_int(V bits) {
  if constexpr (std::is_same_v<T, bool>) {
    return static_cast<bool>(bits & 1);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return static_cast<T>(bits % (uint64_t{1} << 63));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(bits % (uint64_t{1} + std::numeric_limits<T>::max()));
  } else {
    return static_cast<T>(bits % ((uint64_t{1} << std::numeric_limits<T>::digits) + 1));
  }
}
// A number of [from, to) with as many random bits as the type has digits.
template <class T, class V>
at::opmath_type<T> uniform_real(V bits, T from, T to) {
  using R = at::opmath_type<T>;
  constexpr int digits = std::numeric_limits<T>::digits;
  R x = static_cast<R>(bits & ((uint64_t{1} << digits) - 1)) *
        (R(1) / static_cast<R>(uint64_t{1} << digits));
  return x * (R(to) - R(from)) + R(from);
}

// Takes a value with mean 0 and deviation 1.
template <class T>
T normal(T value, T mean, T deviation) {
  return value * deviation + mean;
}
// From here on each takes a value of [0, 1).
template <class T>
T cauchy(T value, T median, T sigma) {
  return median + sigma * std::tan(T(3.14159265358979323846) * (value - T(0.5)));
}
template <class T>
T exponential(T value, T lambda) {
  return -std::log1p(-value) / lambda;
}
template <class T>
T geometric(T value, T p) {
  return std::ceil(std::log(value) / std::log1p(-p));
}
template <class T>
T log_normal(T value) {
  return std::exp(value);
}
template <class T>
T bernoulli(T value, T p) {
  return value < p;
}

}  // namespace transformation
}  // namespace at
