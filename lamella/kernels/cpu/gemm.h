// Matrix products of any strides and dtypes on the CPU: small and integer ones here, the others in
// liblamella_blas.so.
#pragma once
#include "lamella/core/scalar.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

// One operand: `batch` matrices of rows and columns, strides in elements.
struct Matrices {
  const void* data;
  int64_t row, column, batch;

  static Matrices of(const Tensor& t) {
    size_t n = t.strides().size();
    return {t.data_ptr(), t.strides()[n - 2], t.strides()[n - 1], n == 3 ? t.strides()[0] : 0};
  }
  Matrices transposed() const { return {data, column, row, batch}; }
};

// c = alpha * a b + beta * c for each of `batch` triples: a is m x k, b k x n, c m x n. With beta 0
// c is not read. c must not overlap a or b.
struct Gemm {
  ScalarType dtype;
  int64_t batch, m, n, k;
  Matrices a, b, c;
  Scalar alpha = 1, beta = 0;
};
void gemm(const char* op, const Gemm& problem);

// The product of two vectors, `conjugate` the first.
void dot_product(const Tensor& a, const Tensor& b, bool conjugate, void* result);

}  // namespace lamella::native
