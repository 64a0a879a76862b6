// at::native::cpublas: gemm, batched gemm, brgemm, axpy and copy over raw memory, computed by
// Lamella's operators.
//
// A matrix with leading dimension `ld` has element (row, column) at row + column * ld. The memory
// belongs to the caller, who must ensure that operands that are read do not overlap the result.
#pragma once
#include <ATen/OpMathType.h>
#include <ATen/native/TransposeType.h>
#include <c10/util/Exception.h>

#include "lamella/api/from_blob.h"
#include "lamella/dispatch/guards.h"

namespace at::native::cpublas {

namespace internal {

template <class T>
Tensor vector(int64_t size, T* data, int64_t step) {
  return lamella::from_blob(const_cast<std::remove_const_t<T>*>(data), {size}, {step},
                            lamella::CppTypeToScalarType<std::remove_const_t<T>>::value);
}
// Throws if the columns of a matrix, which begin `ld` elements apart, overlap.
inline void check_columns(const char* name, int64_t rows, int64_t columns, int64_t ld) {
  LAMELLA_CHECK(columns <= 1 || ld >= rows, "gemm: expected '", name, "' to be at least ", rows,
                ", got ", ld);
}
template <class T>
Tensor matrices(int64_t count, int64_t stride, int64_t rows, int64_t columns, T* data, int64_t ld) {
  return lamella::from_blob(const_cast<std::remove_const_t<T>*>(data), {count, rows, columns},
                            {stride, 1, ld},
                            lamella::CppTypeToScalarType<std::remove_const_t<T>>::value);
}
// Tensors over the operands of a product: `rows` by `columns` after transposition.
template <class T>
Tensor operands(TransposeType transposed, int64_t count, int64_t stride, int64_t rows,
                int64_t columns, const T* data, int64_t ld, const char* name) {
  const bool plain = transposed == TransposeType::NoTranspose;
  check_columns(name, plain ? rows : columns, plain ? columns : rows, ld);
  if (plain) return matrices(count, stride, rows, columns, data, ld);
  Tensor given = matrices(count, stride, columns, rows, data, ld).transpose(1, 2);
  return transposed == TransposeType::ConjTranspose ? given.conj() : given;
}

// Excludes the layers (autograd and others) from calls on this memory.
struct BelowLayers {
  lamella::ExcludeDispatchKeyGuard guard{DispatchKeySet(DispatchKeySet::FULL) -
                                         lamella::after_ADInplaceOrView_keyset};
};

}  // namespace internal

template <class C>
using Factor = std::conditional_t<std::is_integral_v<C>, C, at::opmath_type<C>>;

// c = alpha * op(a) op(b) + beta * c for `batch_size` matrices, of which each begins a stride of
// elements after the previous one: op(a) is m by k, op(b) k by n. With beta 0 the values in c are
// not read. c may be of a wider dtype than a and b; the product is computed in c's.
template <class A, class C>
void gemm_batched_with_stride(TransposeType transa, TransposeType transb, int64_t batch_size,
                              int64_t m, int64_t n, int64_t k, Factor<C> alpha, const A* a,
                              int64_t lda, int64_t batch_stride_a, const A* b, int64_t ldb,
                              int64_t batch_stride_b, Factor<C> beta, C* c, int64_t ldc,
                              int64_t batch_stride_c) {
  internal::BelowLayers below;
  Tensor left = internal::operands(transa, batch_size, batch_stride_a, m, k, a, lda, "lda");
  Tensor right = internal::operands(transb, batch_size, batch_stride_b, k, n, b, ldb, "ldb");
  internal::check_columns("ldc", m, n, ldc);
  Tensor out = internal::matrices(batch_size, batch_stride_c, m, n, c, ldc);
  if constexpr (!std::is_same_v<A, C>) {
    left = left.to(out.scalar_type());
    right = right.to(out.scalar_type());
  }
  if (batch_size == 1) {
    out[0].addmm_(left[0], right[0], beta, alpha);
  } else {
    out.baddbmm_(left, right, beta, alpha);
  }
}
template <class A, class C>
void gemm(TransposeType transa, TransposeType transb, int64_t m, int64_t n, int64_t k,
          Factor<C> alpha, const A* a, int64_t lda, const A* b, int64_t ldb, Factor<C> beta, C* c,
          int64_t ldc) {
  gemm_batched_with_stride(transa, transb, 1, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc,
                           0);
}
template <class T>
void gemm_batched(TransposeType transa, TransposeType transb, int64_t batch_size, int64_t m,
                  int64_t n, int64_t k, T alpha, const T* const* a, int64_t lda, const T* const* b,
                  int64_t ldb, const T beta, T* const* c, int64_t ldc) {
  for (int64_t i = 0; i < batch_size; ++i) {
    gemm(transa, transb, m, n, k, alpha, a[i], lda, b[i], ldb, beta, c[i], ldc);
  }
}

// y += alpha * x. Steps are positive.
template <class T>
void axpy(int64_t n, T a, const T* x, int64_t incx, T* y, int64_t incy) {
  internal::BelowLayers below;
  internal::vector(n, y, incy).add_(internal::vector(n, x, incx), a);
}
// y = x. Steps are positive.
template <class T>
void copy(int64_t n, const T* x, int64_t incx, T* y, int64_t incy) {
  internal::BelowLayers below;
  internal::vector(n, y, incy).copy_(internal::vector(n, x, incx));
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
    constexpr auto plain = TransposeType::NoTranspose;
    gemm(plain, plain, N, M, K, Factor<C>(1), b, ld_b, a, ld_a, Factor<C>(add_C), c, ld_c);
  } else {
    TORCH_CHECK(false, "brgemm: expected A and B of one dtype");
  }
}
inline void brgemm_release(bool = true) {}

}  // namespace at::native::cpublas
