// Rows of sparse products and checks of their indices, compiled for each capability.
#include "lamella/more/sparse/rows.h"

#include <algorithm>
#include <type_traits>

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

// Columns [at, at + kWidth) of a row, whose sums stay in registers.
template <int64_t kWidth, class T, class I>
inline void stripe(const RowProduct<T, I>& of, int64_t row, int64_t at) {
  T sums[kWidth] = {};
  for (I k = of.crow[row]; k < of.crow[row + 1]; ++k) {
    const T value = of.values[k];
    const T* line = of.other + static_cast<int64_t>(of.columns[k]) * of.width + at;
    for (int64_t j = 0; j < kWidth; ++j) add_product(sums[j], value, line[j]);
  }
  std::copy(sums, sums + kWidth, of.out + row * of.width + at);
}

// A vector on the right: four sums, as each waits for the one before.
template <class T, class I>
inline T gathered(const RowProduct<T, I>& of, int64_t row) {
  T sums[4] = {};
  int64_t k = of.crow[row], end = of.crow[row + 1];
  for (; k + 4 <= end; k += 4) {
    for (int64_t j = 0; j < 4; ++j) {
      add_product(sums[j], of.values[k + j], of.other[of.columns[k + j]]);
    }
  }
  for (; k < end; ++k) add_product(sums[0], of.values[k], of.other[of.columns[k]]);
  const T one = [] {
    if constexpr (std::is_arithmetic_v<T>) {
      return T(1);
    } else {
      return T{1, 0};
    }
  }();
  for (int64_t j = 1; j < 4; ++j) add_product(sums[0], sums[j], one);
  return sums[0];
}

template <class T, class I>
void product(const RowProduct<T, I>& of, int64_t begin, int64_t end) {
  constexpr int64_t kWide = 256 / sizeof(T), kNarrow = 32 / sizeof(T);
  for (int64_t row = begin; row < end; ++row) {
    if (of.width == 1) {
      of.out[row] = gathered(of, row);
      continue;
    }
    int64_t at = 0;
    for (; at + kWide <= of.width; at += kWide) stripe<kWide>(of, row, at);
    for (; at + kNarrow <= of.width; at += kNarrow) stripe<kNarrow>(of, row, at);
    for (; at < of.width; ++at) stripe<1>(of, row, at);
  }
}

template <class I>
bool inside(const I* indices, int64_t count, int64_t size) {
  using U = std::make_unsigned_t<I>;
  U most = 0;  // a negative index is the largest of these
  for (int64_t k = 0; k < count; ++k) most = std::max(most, static_cast<U>(indices[k]));
  return count == 0 || static_cast<uint64_t>(most) < static_cast<uint64_t>(size);
}

}  // namespace

template <class T, class I>
const RowFunctions<T, I>& rows_of() {
  static constexpr RowFunctions<T, I> kRows = {&product<T, I>, &inside<I>};
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
