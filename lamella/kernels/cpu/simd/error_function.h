// The error function and its relatives in vectors.
#pragma once
#include "lamella/kernels/cpu/simd/logarithm.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {

template <class V>
inline V v_erf(V x) {
  using T = ElementOf<V>;
  V size = v_at_most(v_abs(x), sizeof(T) == 4 ? T(4) : T(6));
  return v_copysign((size < 1 ? size : V{}) + v_piecewise(size, Pieces<T>::erf), x);
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
