// Runs functions of vectors over arrays of doubles. For files that are compiled for each
// capability.
#pragma once
#include <cstring>

#include "lamella/kernels/cpu/simd/vec.h"
#include "lamella/kernels/families/special/blocks.h"

namespace lamella::special {
inline namespace CPU_CAPABILITY {

// to[i] = f(from[i]) in vectors; the last vector is padded with copies of the last element.
template <class F>
void over_blocks(const double* from, double* to, int64_t count, const F& f) {
  constexpr int64_t kLanes = sizeof(native::VecD) / sizeof(double);
  native::VecD x;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    std::memcpy(&x, from + i, sizeof(x));
    x = f(x);
    std::memcpy(to + i, &x, sizeof(x));
  }
  if (i == count) return;
  x = native::VecD{} + from[count - 1];
  std::memcpy(&x, from + i, static_cast<size_t>(count - i) * sizeof(double));
  x = f(x);
  std::memcpy(to + i, &x, static_cast<size_t>(count - i) * sizeof(double));
}

void set_functions(Blocks* blocks);
void set_polynomials(Blocks* blocks);

}  // namespace CPU_CAPABILITY
}  // namespace lamella::special
