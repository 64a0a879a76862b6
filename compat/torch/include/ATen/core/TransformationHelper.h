// at::transformation: turns random bits and uniform numbers into samples of distributions.
#pragma once
#include <ATen/OpMathType.h>
#include <c10/lamella_names.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace at {

namespace transformation {

// An integer in [base, base + range).
template <class T, class V>
T uniform_int_from_to(V bits, uint64_t range, int64_t base) {
  return static_cast<T>(static_cast<int64_t>(bits % range + static_cast<uint64_t>(base)));
}
// An integer from 0 to the largest value of T; for a floating type, to the largest integer up to
// which it represents all integers exactly.
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
// A uniform number in [from, to) with as many random bits as T has digits.
template <class T, class V>
at::opmath_type<T> uniform_real(V bits, T from, T to) {
  using R = at::opmath_type<T>;
  constexpr int digits = std::numeric_limits<T>::digits;
  R x = static_cast<R>(bits & ((uint64_t{1} << digits) - 1)) *
        (R(1) / static_cast<R>(uint64_t{1} << digits));
  return x * (R(to) - R(from)) + R(from);
}

// `value` is a sample with mean 0 and standard deviation 1.
template <class T>
T normal(T value, T mean, T deviation) {
  return value * deviation + mean;
}
// The functions below take a uniform number in [0, 1).
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
