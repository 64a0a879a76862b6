// c10::is_negative, signum, signs_differ and comparisons between types of different signs.
#pragma once
#include <limits>
#include <type_traits>

#include <c10/lamella_names.h>

namespace c10 {
template <class T>
constexpr bool is_negative(const T& x) {
  if constexpr (std::is_unsigned_v<T>) {
    return false;
  } else {
    return x < T(0);
  }
}
template <class T>
constexpr int signum(const T& x) {
  return static_cast<int>(T(0) < x) - static_cast<int>(is_negative(x));
}
template <class T, class U>
constexpr bool signs_differ(const T& a, const U& b) {
  return is_negative(a) != is_negative(b);
}
template <class Limit, class T>
constexpr bool greater_than_max(const T& x) {
  constexpr bool can = std::numeric_limits<T>::digits > std::numeric_limits<Limit>::digits;
  if constexpr (can) {
    return x > static_cast<T>(std::numeric_limits<Limit>::max());
  } else {
    return false;
  }
}
template <class Limit, class T>
constexpr bool less_than_lowest(const T& x) {
  if constexpr (std::is_unsigned_v<T>) {
    return false;
  } else if constexpr (std::is_unsigned_v<Limit>) {
    return x < T(0);
  } else if constexpr (std::numeric_limits<T>::digits > std::numeric_limits<Limit>::digits) {
    return x < static_cast<T>(std::numeric_limits<Limit>::lowest());
  } else {
    return false;
  }
}
}  // namespace c10
