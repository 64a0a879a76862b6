// Shared by the kernels of linear algebra: checks of their arguments and stacks of column-major
// matrices, the layout that LAPACK uses.
#pragma once
#include "lamella/core/interrupt.h"
#include "lamella/kernels/cpu/blas_library.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

// LAPACK's functions. Callers call this for each matrix of a stack, because it also checks for
// interrupts.
inline const lamella_lapack& lapack() {
  check_interrupt();
  return *blas_library().lapack;
}

inline void check_linalg_dtype(const char* op, const Tensor& a, const char* name) {
  ScalarType dtype = a.scalar_type();
  LAMELLA_CHECK(
      dtype == kFloat || dtype == kDouble || dtype == kComplexFloat || dtype == kComplexDouble, op,
      ": expected '", name, "' to be float32, float64, complex64 or complex128, got ", dtype);
}
inline void check_lapack(const char* op, int32_t info) {
  LAMELLA_CHECK(info != LAMELLA_LAPACK_NO_MEMORY, op, ": not enough memory for the work space");
  LAMELLA_CHECK(
      info != LAMELLA_LAPACK_TOO_LARGE, op,
      ": expected a matrix with fewer rows and columns, got one whose sizes or work space "
      "are more than LAPACK counts in 32 bits");
  LAMELLA_INTERNAL_ASSERT(info >= 0, op, ": LAPACK refuses argument ", -info);
}
inline void check_matrices(const char* op, const Tensor& a, const char* name) {
  LAMELLA_CHECK(a.dim() >= 2, op, ": expected '", name, "' to have at least 2 dimensions, got ",
                a.sizes());
  LAMELLA_CHECK(a.size(-1) <= INT32_MAX && a.size(-2) <= INT32_MAX, op, ": expected '", name,
                "' to have at most ", INT32_MAX, " rows and columns, got ", a.sizes());
  check_linalg_dtype(op, a, name);
}
inline void check_square(const char* op, const Tensor& a, const char* name) {
  check_matrices(op, a, name);
  LAMELLA_CHECK(a.size(-1) == a.size(-2), op, ": expected '", name,
                "' to be a stack of square matrices, got ", a.sizes());
}

inline Dims batch_of(const Tensor& a) { return Dims(a.sizes().slice(0, a.sizes().size() - 2)); }
inline Dims with_sizes(Dims batch, int64_t a) {
  batch.push_back(a);
  return batch;
}
inline Dims with_sizes(Dims batch, int64_t a, int64_t b) {
  batch.push_back(a);
  batch.push_back(b);
  return batch;
}

// A new contiguous stack of column-major matrices of shape `sizes`.
inline Tensor empty_columns(IntArrayRef sizes, ScalarType dtype, Device device) {
  size_t n = sizes.size();
  Dims strides(n, 0);
  int64_t rows = sizes[n - 2] > 1 ? sizes[n - 2] : 1;
  int64_t columns = sizes[n - 1] > 1 ? sizes[n - 1] : 1;
  strides[n - 2] = 1;
  strides[n - 1] = rows;
  int64_t next = rows * columns;
  for (size_t d = n - 2; d-- > 0;) {
    strides[d] = next;
    next *= sizes[d] > 1 ? sizes[d] : 1;
  }
  return new_strided(sizes, strides, dtype, device);
}
inline Tensor copy_columns(const Tensor& a) {
  Tensor result = empty_columns(a.sizes(), a.scalar_type(), a.device());
  result.copy_(a);
  return result;
}

// Gives LAPACK the matrices or vectors of a stack one at a time. The tensor must be laid out by
// empty_columns(), or be contiguous; each item has the last `tail` dimensions.
class Stack {
 public:
  explicit Stack(const Tensor& a, size_t tail = 2) : data_(static_cast<char*>(a.data_ptr())) {
    IntArrayRef sizes = a.sizes();
    bytes_ = product(sizes.slice(sizes.size() - tail)) * a.element_size();
    leading_ = tail == 2 && sizes[sizes.size() - 2] > 1 ? sizes[sizes.size() - 2] : 1;
  }
  void* at(int64_t i) const { return data_ + i * bytes_; }
  int64_t leading() const { return leading_; }

 private:
  char* data_;
  int64_t bytes_;
  int64_t leading_;
};

// Throws unless each entry of `pivots` is a row number from 1 to `rows`.
inline void check_pivots(const char* op, const char* name, const Tensor& pivots, int64_t rows) {
  if (pivots.is_meta()) return;
  const Tensor here = pivots.cpu();
  const auto* p = here.const_data_ptr<int32_t>();
  for (int64_t i = 0, n = here.numel(); i < n; ++i) {
    LAMELLA_CHECK(p[i] >= 1 && p[i] <= rows, op, ": expected the elements of '", name,
                  "' to be in [1, ", rows, "], got ", p[i]);
  }
}
// Checks the pivots and expands them to `count` contiguous pivots for each matrix of the batch.
inline Tensor contiguous_pivots(const char* op, const char* name, const Tensor& pivots,
                                const Dims& batch, int64_t count, int64_t rows) {
  LAMELLA_CHECK(pivots.scalar_type() == kInt, op, ": expected '", name, "' to be int32, got ",
                pivots.scalar_type());
  Dims shape = with_sizes(batch, count);
  LAMELLA_CHECK(
      pivots.dim() > 0 && pivots.size(-1) == count && is_expandable(pivots.sizes(), shape), op,
      ": expected '", name, "' to be broadcastable to ", shape, ", got ", pivots.sizes());
  Tensor dense = pivots.contiguous();
  check_pivots(op, name, dense, rows);
  return dense.sizes().equals(shape) ? dense : dense.expand(shape).contiguous();
}

// True if no element of a contiguous stretch of memory is infinite or NaN.
inline bool all_finite(const void* data, int64_t count, ScalarType dtype) {
  auto finite = [](const auto* p, int64_t n) {
    auto sum = *p * 0;  // infinities and NaNs give NaN
    for (int64_t i = 1; i < n; ++i) sum += p[i] * 0;
    return sum == 0;
  };
  if (count == 0) return true;
  if (is_complex(dtype)) count *= 2;
  return to_real_type(dtype) == kDouble ? finite(static_cast<const double*>(data), count)
                                        : finite(static_cast<const float*>(data), count);
}

// The text that names matrix i of the batch in errors: `(matrix 3 of the batch)`.
inline std::string place_in_batch(const Tensor& info, int64_t i) {
  return info.dim() == 0 ? std::string() : str(" (matrix ", i, " of the batch)");
}
// Throws `op: expected ...` for the first matrix whose info is not 0.
inline void check_info(const char* op, const Tensor& info, const char* expected) {
  if (info.is_meta()) return;
  const Tensor here = info.cpu();
  const auto* p = here.const_data_ptr<int32_t>();
  for (int64_t i = 0, n = here.numel(); i < n; ++i) {
    if (p[i] == 0) continue;
    check_lapack(op, p[i]);
    throw LinAlgError(str(op, ": expected ", expected, place_in_batch(info, i),
                          ", got one where LAPACK stops with info ", p[i]));
  }
}

}  // namespace lamella::native
