// Matrix products of any strides and dtypes on the CPU: kernels of our own (simd/gemm.h), and
// OpenBLAS in liblamella_blas.so for complex numbers.
#pragma once
#include "lamella/core/scalar.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

// One operand: `batch` matrices of rows and columns, strides in elements.
struct Matrices {
  const void* data = nullptr;
  int64_t row = 0, column = 0, batch = 0;
  // The storage of a matrix that may be a constant, with which its packed form is kept: Note [What
  // is kept with a storage]. NULL for other matrices.
  lamella_storage* storage = nullptr;

  static Matrices of(const Tensor& t) {
    size_t n = t.strides().size();
    return {t.data_ptr(), t.strides()[n - 2], t.strides()[n - 1], n == 3 ? t.strides()[0] : 0};
  }
  // An operand that the user passed, so that its packed form may be kept with its storage.
  static Matrices given(const Tensor& t) {
    Matrices x = of(t);
    if (t.strides().size() == 2) x.storage = t.storage_impl();
    return x;
  }
  Matrices transposed() const { return {data, column, row, batch, storage}; }
};

// c = alpha * a b + beta * d for each of `batch` triples: a is m x k, b k x n, c and d m x n. With
// beta 0 d is not read; a d without data is c. c must not overlap a or b, nor d unless they are the
// same.
struct Gemm {
  ScalarType dtype;
  int64_t batch, m, n, k;
  Matrices a, b, c;
  Scalar alpha = 1, beta = 0;
  Matrices d = {};
  Device device = kCPU;
  // The dtype of c and d, if it is another one. On the CPU float32 for bfloat16, and int32 for b of
  // int8 with a of int8 or uint8; the rows of c are contiguous then, and beta is 0 or 1.
  ScalarType result = ScalarType::Undefined;
  bool relu = false;  // for devices alone: negative results become 0
};
void gemm(const char* op, const Gemm& problem);

// The same problem with c, a and b transposed.
inline Gemm transposed(const Gemm& p) {
  Gemm q = p;
  q.m = p.n;
  q.n = p.m;
  q.a = p.b.transposed();
  q.b = p.a.transposed();
  q.c = p.c.transposed();
  q.d = p.d.transposed();
  return q;
}

// The dot product of two vectors; `conjugate` conjugates the first.
void dot_product(const char* op, const Tensor& a, const Tensor& b, bool conjugate, void* result);

// ---- Parts of gemm() ----

// True if tiled_gemm() and is_dots_gemm() support the dtype: always float32, float64, int32 and
// int64 (integers wrap). For bfloat16, c and d are float32 and k is even. Both functions also
// support the dtypes of byte_gemm_kernels_on, with c and d of int32 and k a multiple of the
// group.
bool has_gemm(ScalarType dtype);
// Requires contiguous rows of c, contiguous rows or columns of b, and for bfloat16 contiguous rows
// of a. If d's columns are 0 apart, each of its rows repeats one number for the columns of two
// tiles or more.
void tiled_gemm(const Gemm& problem);
// is_dots_gemm() is true if dots_gemm(), which sums along k, can compute the problem: at most
// `most_rows` rows. c and d may have any strides.
bool is_dots_gemm(const Gemm& problem, int64_t most_rows);
void dots_gemm(const Gemm& problem);
// A product of bytes (Note [Products of bytes]) into c of int32, with nothing added.
void byte_gemm(const char* op, const Gemm& problem);
// Products of complex numbers. Rows of c must be contiguous, and d must be c.
void library_gemm(const char* op, const Gemm& problem);

}  // namespace lamella::native
