// calc_erfinv: the inverse of the error function, of a number.
#pragma once
#include <c10/util/complex.h>

#include "lamella/kernels/cpu/vectorized.h"

template <class T>
  requires std::is_floating_point_v<T>
T calc_erfinv(T y) {
  return lamella::vec::Vectorized<T>(y).erfinv()[0];
}
