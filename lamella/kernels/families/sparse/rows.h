// Rows of the product of a sparse matrix and a dense one; compiled for each capability of the
// processor.
#pragma once
#include <cstdint>

namespace lamella::sparse {

// A complex number whose product has no special cases for infinities and NaN.
template <class R>
struct Pair {
  R real, imag;
};

// A matrix of [rows, inner] in compressed rows, with indices of type I, times one of
// [inner, width] that is contiguous.
template <class T, class I>
struct RowProduct {
  const I *crow, *columns;
  const T *values, *other;
  T* out;  // [rows, width]
  int64_t width;
  uint64_t inner;
};

// The functions of one capability.
template <class T, class I>
struct RowFunctions {
  // Computes rows [begin, end). Returns false if a column index is not in [0, inner).
  bool (*product)(const RowProduct<T, I>& of, int64_t begin, int64_t end);
};

}  // namespace lamella::sparse
