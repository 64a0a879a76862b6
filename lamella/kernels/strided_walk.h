// The walk over several operands of one shape that TensorIterator and StridedLoop share.
//
// Note [The walk]
//   Dimensions are numbered innermost first. Strides are in bytes and lie as [dimension][operand],
//   so that the strides of one dimension are an array that a kernel can be handed. The two
//   innermost dimensions go to the kernel together: a call through a pointer costs a plane then,
//   not a row. `n` is the number of operands: an int, or a std::integral_constant, with which the
//   loops over operands unroll.
#pragma once
#include <cstdint>

#include "lamella/kernels/dims.h"

namespace lamella::native {

inline constexpr int kMaxWalked = 8;  // operands

// Merges adjacent dimensions that form a single strided dimension in every operand. Returns how
// many of the `ndim` dimensions are left.
template <class Count>
int merge_dims(Count n, int ndim, int64_t* sizes, int64_t* strides) {
  if (ndim == 0) return 0;
  int last = 0;
  for (int d = 1; d < ndim; ++d) {
    bool one = true;
    for (int i = 0; i < n; ++i) {
      one = one && strides[d * n + i] == strides[last * n + i] * sizes[last];
    }
    if (one) {
      sizes[last] *= sizes[d];
    } else if (++last != d) {
      sizes[last] = sizes[d];
      for (int i = 0; i < n; ++i) strides[last * n + i] = strides[d * n + i];
    }
  }
  return last + 1;
}

// Calls f(char** data, const int64_t* strides, int64_t size0, int64_t size1) for planes of the
// elements [begin, end): `strides` holds those of the inner dimension, then those of the outer.
// `data`: where each operand begins. Partial rows at the ends of the range are passed as planes of
// one row.
template <class Count, class F>
void walk_planes(Count n, int ndim, const int64_t* sizes, const int64_t* strides, char* const* data,
                 int64_t begin, int64_t end, F&& f) {
  if (begin >= end) return;
  char* p[kMaxWalked];
  if (ndim <= 1) {
    int64_t row[2 * kMaxWalked];
    for (int i = 0; i < n; ++i) {
      row[i] = ndim == 1 ? strides[i] : 0;
      row[n + i] = 0;
      p[i] = data[i] + begin * row[i];
    }
    f(p, static_cast<const int64_t*>(row), end - begin, int64_t{1});
    return;
  }
  // The position of `begin` in each dimension, and each operand's address there without the two
  // innermost.
  int64_t at[kMaxDims];
  char* plane[kMaxWalked];
  for (int i = 0; i < n; ++i) plane[i] = data[i];
  int64_t rest = begin;
  for (int d = 0; d < ndim; ++d) {
    at[d] = rest % sizes[d];
    rest /= sizes[d];
    if (d < 2) continue;
    for (int i = 0; i < n; ++i) plane[i] += at[d] * strides[d * n + i];
  }
  while (begin < end) {
    for (int i = 0; i < n; ++i) p[i] = plane[i] + at[0] * strides[i] + at[1] * strides[n + i];
    const int64_t left = end - begin;
    int64_t run = sizes[0], rows = 1;
    if (at[0] != 0 || left < run) {
      run = run - at[0] < left ? run - at[0] : left;
    } else {
      rows = left / run < sizes[1] - at[1] ? left / run : sizes[1] - at[1];
    }
    f(p, strides, run, rows);
    begin += run * rows;
    at[0] += run;
    if (at[0] < sizes[0]) continue;
    at[0] = 0;
    at[1] += rows;
    if (at[1] < sizes[1]) continue;
    at[1] = 0;
    for (int d = 2; d < ndim; ++d) {
      for (int i = 0; i < n; ++i) plane[i] += strides[d * n + i];
      if (++at[d] < sizes[d]) break;
      for (int i = 0; i < n; ++i) plane[i] -= strides[d * n + i] * sizes[d];
      at[d] = 0;
    }
  }
}

}  // namespace lamella::native
