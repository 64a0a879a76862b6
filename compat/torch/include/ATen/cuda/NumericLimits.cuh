// at::numeric_limits: the bounds with which maxima and minima begin.
#pragma once
#include <c10/macros/Macros.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <limits>

namespace at {
template <class T>
struct numeric_limits {
  using Std = std::numeric_limits<T>;
  static constexpr T lowest() { return Std::lowest(); }
  static constexpr T max() { return Std::max(); }
  // Infinity where the type has it.
  static constexpr T lower_bound() {
    if constexpr (Std::has_infinity) return -Std::infinity();
    return Std::lowest();
  }
  static constexpr T upper_bound() { return Std::has_infinity ? Std::infinity() : Std::max(); }
};
}  // namespace at
