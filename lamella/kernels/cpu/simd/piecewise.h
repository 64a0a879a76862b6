// The layout of piecewise polynomials, whose tables tools/math_coefficients.py computes.
#pragma once
#include <cstdint>
#include <type_traits>

namespace lamella::native {

// A function as polynomials, each over an interval around its centre. Intervals follow the
// bits of x >= 0: the first begins at 0, and from the second on, which begins at the bits
// `first` << `shift`, they are 1 << `shift` long. The last one has no end. Without a rest the
// centres are where rounding takes next to nothing from c[0].
template <class T, int N, bool kHasRest = true>
struct Piecewise {
  struct None {};
  static constexpr int kEntries = sizeof(T) == 4 ? 32 : 16;
  int shift;
  int first;
  T center[kEntries];
  T c[N][kEntries];                                        // lowest powers first
  std::conditional_t<kHasRest, T[kEntries], None> rest{};  // what rounding took from c[0]
};
template <class T>
struct Pieces;

}  // namespace lamella::native
