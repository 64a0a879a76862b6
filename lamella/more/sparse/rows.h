// Rows of the product of a sparse matrix and a dense one; compiled for each capability of the
// processor.
#pragma once
#include <cstdint>

namespace lamella::sparse {

// A complex number whose product has no special cases.
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
};

// The functions of one capability.
template <class T, class I>
struct RowFunctions {
  void (*product)(const RowProduct<T, I>& of, int64_t begin, int64_t end);  // of these rows
  bool (*inside)(const I* indices, int64_t count, int64_t size);  // whether all are in [0, size)
};

}  // namespace lamella::sparse
