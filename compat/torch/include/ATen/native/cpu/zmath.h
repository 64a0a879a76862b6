// at::native::round_impl and its kin: functions of numbers, real or complex, by their parts.
#pragma once
#include <c10/util/complex.h>

#include <cmath>

namespace at::native {
#define LAMELLA_BY_PARTS(name, standard)                \
  template <class T>                                    \
  T name(T z) {                                         \
    if constexpr (c10::is_complex<T>::value) {          \
      return T(standard(z.real()), standard(z.imag())); \
    } else {                                            \
      return standard(z);                               \
    }                                                   \
  }
LAMELLA_BY_PARTS(ceil_impl, std::ceil)
LAMELLA_BY_PARTS(floor_impl, std::floor)
LAMELLA_BY_PARTS(round_impl, std::nearbyint)
LAMELLA_BY_PARTS(trunc_impl, std::trunc)
#undef LAMELLA_BY_PARTS
}  // namespace at::native
