// at::_isnan and similar functions.
#pragma once
#include <c10/core/ScalarType.h>

#include <cmath>

namespace at {
template <class T>
bool _isnan(T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(static_cast<double>(value));
  }
}
template <class T>
bool _isinf(T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isinf(static_cast<double>(value));
  }
}
}  // namespace at
