// at::native::cpublas: gemm, batched gemm, brgemm, axpy and copy over raw memory.
#pragma once
#include <ATen/OpMathType.h>
#include <ATen/native/TransposeType.h>
#include <c10/util/Exception.h>

namespace at::native::cpublas {

namespace internal {
inline lamella::column_major::Transposed transposed(TransposeType type) {
  return static_cast<lamella::column_major::Transposed>(type);
}
}  // namespace internal

template <class C>
using Factor = std::conditional_t<std::is_integral_v<C>, C, at::opmath_type<C>>;

template <class A, class C>
void gemm(TransposeType transa, TransposeType transb, int64_t m, int64_t n, int64_t k,
          Factor<C> alpha, const A* a, int64_t lda, const A* b, int64_t ldb, Factor<C> beta, C* c,
          int64_t ldc) {
  lamella::column_major::gemm(internal::transposed(transa), internal::transposed(transb), 1, m, n,
                              k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0);
}

template <class T>
void gemm_batched_with_stride(TransposeType transa, TransposeType transb, int64_t batch_size,
                              int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
                              int64_t batch_stride_a, const T* b, int64_t ldb,
                              int64_t batch_stride_b, T beta, T* c, int64_t ldc,
                              int64_t batch_stride_c) {
  lamella::column_major::gemm(internal::transposed(transa), internal::transposed(transb),
                              batch_size, m, n, k, alpha, a, lda, batch_stride_a, b, ldb,
                              batch_stride_b, beta, c, ldc, batch_stride_c);
}

template <class T>
void gemm_batched(TransposeType transa, TransposeType transb, int64_t batch_size, int64_t m,
                  int64_t n, int64_t k, T alpha, const T* const* a, int64_t lda, const T* const* b,
                  int64_t ldb, const T beta, T* const* c, int64_t ldc) {
  for (int64_t i = 0; i < batch_size; ++i) {
    gemm_batched_with_stride(transa, transb, 1, m, n, k, alpha, a[i], lda, 0, b[i], ldb, 0, beta,
                             c[i], ldc, 0);
  }
}

template <class T>
void axpy(int64_t n, T a, const T* x, int64_t incx, T* y, int64_t incy) {
  lamella::column_major::axpy(n, a, x, incx, y, incy);
}
template <class T>
void copy(int64_t n, const T* x, int64_t incx, T* y, int64_t incy) {
  lamella::column_major::copy(n, x, incx, y, incy);
}

// True if brgemm takes a right operand with interleaved rows. It never does here, so callers that
// ask first pass plain rows.
inline bool could_pack(at::ScalarType) { return false; }
inline void pack(int64_t, int64_t, int64_t, int64_t, at::ScalarType, at::ScalarType, const void*,
                 void*) {
  TORCH_CHECK(false, "pack: expected could_pack() to be asked first; operands stay plain here");
}

// C = A B or C += A B, row-major: A is M by K, B is K by N; C has the type of the computation.
template <class A, class B, class C>
void brgemm(int64_t M, int64_t N, int64_t K, int64_t ld_a, int64_t ld_b, int64_t ld_c, bool add_C,
            const A* a, const B* b, C* c, bool is_vnni = !std::is_same_v<A, float>) {
  TORCH_CHECK(!is_vnni, "brgemm: expected 'is_vnni' to be false, as could_pack() says");
  if constexpr (std::is_same_v<A, B>) {
    // A row-major matrix is its transpose in column-major order, so the product is computed with
    // the operands swapped.
    constexpr auto plain = lamella::column_major::Transposed::kNo;
    lamella::column_major::gemm(plain, plain, 1, N, M, K, Factor<C>(1), b, ld_b, 0, a, ld_a, 0,
                                Factor<C>(add_C), c, ld_c, 0);
  } else {
    TORCH_CHECK(false, "brgemm: expected A and B of one dtype");
  }
}
inline void brgemm_release(bool = true) {}

}  // namespace at::native::cpublas
