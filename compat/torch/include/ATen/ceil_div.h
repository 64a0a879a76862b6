// at::ceil_div, at::round_up.
#pragma once
#include <c10/lamella_names.h>

namespace at {
template <class T>
constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}
template <class T>
constexpr T round_up(T a, T b) {
  return ceil_div(a, b) * b;
}
}  // namespace at
