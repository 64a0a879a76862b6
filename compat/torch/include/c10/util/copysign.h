// c10::copysign.
#pragma once
#include <cmath>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

namespace c10 {
template <class T, class U>
auto copysign(const T& a, const U& b) {
  return std::copysign(a, b);
}
// The sign is the highest bit of both formats.
template <class T>
  requires(lamella::detail::is_small_float_v<T> && sizeof(T) == 2)
T copysign(T a, T b) {
  return T((a.x & 0x7fff) | (b.x & 0x8000), T::from_bits());
}
}  // namespace c10
