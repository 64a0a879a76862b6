// at::native::powi: powers of integers, by squaring.
#pragma once
#include <ATen/native/DispatchStub.h>

namespace at::native {

// A negative power is 0, unless the base is 1 or -1.
template <class T>
  requires std::is_integral_v<T>
C10_HOST_DEVICE T powi(T base, T exponent) {
  using Unsigned = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
  if (exponent < 0) {
    const bool odd = exponent % 2 != 0;
    return base == T(1) || (base == T(-1) && !odd) ? 1 : base == T(-1) ? -1 : 0;
  }
  Unsigned result = 1, square = static_cast<Unsigned>(base);
  for (Unsigned left = static_cast<Unsigned>(exponent); left != 0; left /= 2, square *= square) {
    if (left % 2 != 0) result *= square;
  }
  return static_cast<T>(result);
}

}  // namespace at::native
