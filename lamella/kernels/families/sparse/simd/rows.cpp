// Rows of sparse products, compiled for each capability.
#include "lamella/kernels/families/sparse/rows.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::sparse {
inline namespace CPU_CAPABILITY {
namespace {

template <class T>
inline void add_product(T& sum, T a, T b) {
  sum += a * b;
}
template <class R>
inline void add_product(Pair<R>& sum, Pair<R> a, Pair<R> b) {
  sum.real += a.real * b.real - a.imag * b.imag;
  sum.imag += a.real * b.imag + a.imag * b.real;
}

template <class T>
inline T sum_of(T a, T b) {
  return a + b;
}
template <class R>
inline Pair<R> sum_of(Pair<R> a, Pair<R> b) {
  return {a.real + b.real, a.imag + b.imag};
}

// The dense matrix's row for one stored element; null if the element's column is out of range.
template <class T, class I>
LAMELLA_ALWAYS_INLINE const T* line_of(const RowProduct<T, I>& of, I k) {
  const auto column = static_cast<uint64_t>(of.columns[k]);  // negative columns become huge
  return LAMELLA_LIKELY(column < of.inner) ? of.other + column * static_cast<uint64_t>(of.width)
                                           : nullptr;
}

// Computes columns [at, at + kWidth) of a row, whose sums stay in registers. Like the functions
// below, returns false if a column index is not in [0, inner).
template <int64_t kWidth, class T, class I>
bool stripe(const RowProduct<T, I>& of, int64_t row, int64_t at) {
  T sums[kWidth] = {};
  for (I k = of.crow[row]; k < of.crow[row + 1]; ++k) {
    const T value = of.values[k];
    const T* line = line_of(of, k);
    if (LAMELLA_UNLIKELY(line == nullptr)) return false;
    for (int64_t j = 0; j < kWidth; ++j) add_product(sums[j], value, line[at + j]);
  }
  std::copy(sums, sums + kWidth, of.out + row * of.width + at);
  return true;
}

template <class T>
using VecOf = std::conditional_t<std::is_same_v<T, float>, native::VecF, native::VecD>;
// Computes kVectors vectors of a row from column `at` on.
template <int kVectors, class T, class I>
bool vectors(const RowProduct<T, I>& of, int64_t row, int64_t at) {
  using V = VecOf<T>;
  constexpr int64_t kLanes = sizeof(V) / sizeof(T);
  V sums[kVectors] = {};
  for (I k = of.crow[row]; k < of.crow[row + 1]; ++k) {
    const T* line = line_of(of, k);
    if (LAMELLA_UNLIKELY(line == nullptr)) return false;
    const V value = V{} + of.values[k];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      V x;
      std::memcpy(&x, line + at + v * kLanes, sizeof(V));
      sums[v] += value * x;
    }
  }
  std::memcpy(of.out + row * of.width + at, sums, sizeof(sums));
  return true;
}

// Computes a row for a dense matrix of one column. Uses four sums, because each addition waits for
// the previous one.
template <class T, class I>
bool gathered(const RowProduct<T, I>& of, int64_t row) {
  T sums[4] = {};
  I k = of.crow[row];
  const I end = of.crow[row + 1];
  for (; k + 4 <= end; k += 4) {
    const T* x[4];
    for (int j = 0; j < 4; ++j) {
      x[j] = line_of(of, static_cast<I>(k + j));
      if (LAMELLA_UNLIKELY(x[j] == nullptr)) return false;
    }
    for (int j = 0; j < 4; ++j) add_product(sums[j], of.values[k + j], *x[j]);
  }
  for (; k < end; ++k) {
    const T* x = line_of(of, k);
    if (LAMELLA_UNLIKELY(x == nullptr)) return false;
    add_product(sums[0], of.values[k], *x);
  }
  of.out[row] = sum_of(sum_of(sums[0], sums[1]), sum_of(sums[2], sums[3]));
  return true;
}

template <class T, class I>
bool product(const RowProduct<T, I>& of, int64_t begin, int64_t end) {
  bool inside = true;
  for (int64_t row = begin; inside && row < end; ++row) {
    if (of.width == 1) {
      inside = gathered(of, row);
      continue;
    }
    int64_t at = 0;
    if constexpr (std::is_arithmetic_v<T>) {
      constexpr int64_t kLanes = sizeof(VecOf<T>) / sizeof(T);
      for (; inside && at + 8 * kLanes <= of.width; at += 8 * kLanes) {
        inside = vectors<8>(of, row, at);
      }
      for (; inside && at + 4 * kLanes <= of.width; at += 4 * kLanes) {
        inside = vectors<4>(of, row, at);
      }
      for (; inside && at + 2 * kLanes <= of.width; at += 2 * kLanes) {
        inside = vectors<2>(of, row, at);
      }
      for (; inside && at + kLanes <= of.width; at += kLanes) inside = vectors<1>(of, row, at);
    }
    constexpr int64_t kNarrow = 32 / sizeof(T);
    for (; inside && at + kNarrow <= of.width; at += kNarrow) inside = stripe<kNarrow>(of, row, at);
    for (; inside && at < of.width; ++at) inside = stripe<1>(of, row, at);
  }
  return inside;
}

}  // namespace

template <class T, class I>
const RowFunctions<T, I>& rows_of() {
  static constexpr RowFunctions<T, I> kRows = {&product<T, I>};
  return kRows;
}
#define LAMELLA_ROWS(T)                                           \
  template const RowFunctions<T, int32_t>& rows_of<T, int32_t>(); \
  template const RowFunctions<T, int64_t>& rows_of<T, int64_t>();
LAMELLA_ROWS(float)
LAMELLA_ROWS(double)
LAMELLA_ROWS(Pair<float>)
LAMELLA_ROWS(Pair<double>)
#undef LAMELLA_ROWS

}  // namespace CPU_CAPABILITY
}  // namespace lamella::sparse
