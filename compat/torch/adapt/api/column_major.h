// BLAS-like products and sums over column-major raw memory, computed by Lamella's operators.
//
// A matrix with leading dimension `ld` has element (row, column) at row + column * ld. The memory
// belongs to the caller, who must ensure that operands that are read do not overlap the result.
#pragma once
#include "lamella/api/from_blob.h"
#include "lamella/dispatch/guards.h"

namespace lamella::column_major {

enum class Transposed { kNo, kYes, kConjugate };

namespace detail {

template <class T>
Tensor vector(int64_t size, T* data, int64_t step) {
  return from_blob(const_cast<std::remove_const_t<T>*>(data), {size}, {step},
                   CppTypeToScalarType<std::remove_const_t<T>>::value);
}
// Throws if the columns of a matrix, which begin `ld` elements apart, overlap.
inline void check_columns(const char* name, int64_t rows, int64_t columns, int64_t ld) {
  LAMELLA_CHECK(columns <= 1 || ld >= rows, "gemm: expected '", name, "' to be at least ", rows,
                ", got ", ld);
}
template <class T>
Tensor matrices(int64_t count, int64_t stride, int64_t rows, int64_t columns, T* data, int64_t ld) {
  return from_blob(const_cast<std::remove_const_t<T>*>(data), {count, rows, columns},
                   {stride, 1, ld}, CppTypeToScalarType<std::remove_const_t<T>>::value);
}
// Tensors over the operands of a product: `rows` by `columns` after transposition.
template <class T>
Tensor operands(Transposed transposed, int64_t count, int64_t stride, int64_t rows, int64_t columns,
                const T* data, int64_t ld, const char* name) {
  const bool plain = transposed == Transposed::kNo;
  check_columns(name, plain ? rows : columns, plain ? columns : rows, ld);
  if (plain) return matrices(count, stride, rows, columns, data, ld);
  Tensor given = matrices(count, stride, columns, rows, data, ld).transpose(1, 2);
  return transposed == Transposed::kConjugate ? given.conj() : given;
}

// Excludes the layers (autograd and others) from calls on this memory.
struct BelowLayers {
  ExcludeDispatchKeyGuard guard{DispatchKeySet(DispatchKeySet::FULL) -
                                after_ADInplaceOrView_keyset};
};

}  // namespace detail

// c = alpha * op(a) op(b) + beta * c for `count` matrices, of which each begins `stride` elements
// after the previous one: op(a) is m by k, op(b) k by n. With beta 0 the values in c are not read.
// c may be of a wider dtype than a and b; the product is computed in c's.
template <class A, class C, class Factor>
void gemm(Transposed transposed_a, Transposed transposed_b, int64_t count, int64_t m, int64_t n,
          int64_t k, Factor alpha, const A* a, int64_t lda, int64_t stride_a, const A* b,
          int64_t ldb, int64_t stride_b, Factor beta, C* c, int64_t ldc, int64_t stride_c) {
  detail::BelowLayers below;
  Tensor left = detail::operands(transposed_a, count, stride_a, m, k, a, lda, "lda");
  Tensor right = detail::operands(transposed_b, count, stride_b, k, n, b, ldb, "ldb");
  detail::check_columns("ldc", m, n, ldc);
  Tensor out = detail::matrices(count, stride_c, m, n, c, ldc);
  if constexpr (!std::is_same_v<A, C>) {
    left = left.to(out.scalar_type());
    right = right.to(out.scalar_type());
  }
  if (count == 1) {
    out[0].addmm_(left[0], right[0], beta, alpha);
  } else {
    out.baddbmm_(left, right, beta, alpha);
  }
}

// y += alpha * x. Steps are positive.
template <class T>
void axpy(int64_t n, T alpha, const T* x, int64_t step_x, T* y, int64_t step_y) {
  detail::BelowLayers below;
  detail::vector(n, y, step_y).add_(detail::vector(n, x, step_x), alpha);
}
// y = x. Steps are positive.
template <class T>
void copy(int64_t n, const T* x, int64_t step_x, T* y, int64_t step_y) {
  detail::BelowLayers below;
  detail::vector(n, y, step_y).copy_(detail::vector(n, x, step_x));
}

}  // namespace lamella::column_major
