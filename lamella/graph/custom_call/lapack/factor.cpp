// Factorizations and products of reflectors: Cholesky, LU, QR, Hessenberg and tridiagonal forms.
#include "lamella/graph/custom_call/lapack/call.h"
#include "lamella/graph/custom_call/lapack/handlers.h"

namespace lamella::hlo::lapack {
namespace {}  // namespace

template <class T>
void potrf(const ffi::CallFrame& frame) {
  LapackCall call(frame, 1, 2);
  char uplo = call.letter("uplo", "LU");
  Matrices<T> a = call.taken_matrices<T>(0, 0);
  require_square(a.rows, a.columns);
  Int* info = call.info(1);
  Int lda = a.leading();
  for (int64_t i = 0; i < a.batch; ++i) {
    Routines<T>::potrf(&uplo, &a.rows, a.at(i), &lda, info + i, 1);
  }
}
LAMELLA_FOR_FOUR_TYPES(potrf)

template <class T>
void getrf(const ffi::CallFrame& frame) {
  LapackCall call(frame, 1, 3);
  Matrices<T> a = call.taken_matrices<T>(0, 0);
  Vectors<Int> pivots = call.result_vectors<Int>(1, std::min(a.rows, a.columns));
  Int* info = call.info(2);
  Int lda = a.leading();
  for (int64_t i = 0; i < a.batch; ++i) {
    Routines<T>::getrf(&a.rows, &a.columns, a.at(i), &lda, pivots.at(i), info + i);
  }
}
LAMELLA_FOR_FOUR_TYPES(getrf)

template <class T>
void geqrf(const ffi::CallFrame& frame) {
  LapackCall call(frame, 1, 2);
  Matrices<T> a = call.taken_matrices<T>(0, 0);
  Vectors<T> tau = call.result_vectors<T>(1, std::min(a.rows, a.columns));
  Int lda = a.leading(), info = 0;
  auto run = [&](T* matrix, T* reflectors, T* work, const Int* count) {
    Routines<T>::geqrf(&a.rows, &a.columns, matrix, &lda, reflectors, work, count, &info);
  };
  Work<T> work([&](T* space, const Int* count) { run(a.data, tau.data, space, count); });
  for (int64_t i = 0; i < a.batch; ++i) run(a.at(i), tau.at(i), work.data(), work.count());
}
LAMELLA_FOR_FOUR_TYPES(geqrf)

template <class T>
void geqp3(const ffi::CallFrame& frame) {
  LapackCall call(frame, 2, 3);
  Matrices<T> a = call.taken_matrices<T>(0, 0);
  Vectors<Int> jpvt = call.taken_vectors<Int>(1, 1);
  LapackCall::require_size("operand", 1, "elements", a.columns, jpvt.size);
  Vectors<T> tau = call.result_vectors<T>(2, std::min(a.rows, a.columns));
  Int lda = a.leading(), info = 0;
  std::vector<Real<T>> norms(is_complex<T> ? 2 * static_cast<size_t>(a.columns) + 1 : 1);
  auto run = [&](T* matrix, Int* columns, T* reflectors, T* work, const Int* count) {
    if constexpr (is_complex<T>) {
      Routines<T>::geqp3(&a.rows, &a.columns, matrix, &lda, columns, reflectors, work, count,
                         norms.data(), &info);
    } else {
      Routines<T>::geqp3(&a.rows, &a.columns, matrix, &lda, columns, reflectors, work, count,
                         &info);
    }
  };
  Work<T> work([&](T* space, const Int* count) { run(a.data, jpvt.data, tau.data, space, count); });
  for (int64_t i = 0; i < a.batch; ++i) {
    run(a.at(i), jpvt.at(i), tau.at(i), work.data(), work.count());
  }
}
LAMELLA_FOR_FOUR_TYPES(geqp3)

template <class T>
void orgqr(const ffi::CallFrame& frame) {
  LapackCall call(frame, 2, 1);
  Matrices<T> a = call.taken_matrices<T>(0, 0);
  Vectors<const T> tau = call.vectors<T>(1);
  LAMELLA_CHECK(a.columns <= a.rows && tau.size <= a.columns,
                "expected operand 0 to have no more columns than rows, and operand 1 no more "
                "elements than that, got ",
                a.rows, " x ", a.columns, " and ", tau.size);
  Int lda = a.leading(), info = 0;
  auto run = [&](T* matrix, const T* reflectors, T* work, const Int* count) {
    Routines<T>::orgqr(&a.rows, &a.columns, &tau.size, matrix, &lda, reflectors, work, count,
                       &info);
  };
  Work<T> work([&](T* space, const Int* count) { run(a.data, tau.data, space, count); });
  for (int64_t i = 0; i < a.batch; ++i) run(a.at(i), tau.at(i), work.data(), work.count());
}
LAMELLA_FOR_FOUR_TYPES(orgqr)

template <class T>
void ormqr(const ffi::CallFrame& frame) {
  LapackCall call(frame, 3, 1);
  bool left = call.flag("left"), transpose = call.flag("transpose");
  Matrices<const T> a = call.matrices<T>(0);
  Vectors<const T> tau = call.vectors<T>(1);
  Matrices<T> c = call.taken_matrices<T>(2, 0);
  LapackCall::require_size("operand", 0, "rows", left ? c.rows : c.columns, a.rows);
  LAMELLA_CHECK(tau.size <= a.columns && tau.size <= a.rows, "expected operand 1 to have at most ",
                std::min(a.rows, a.columns), " elements, got ", tau.size);
  char side = left ? 'L' : 'R', op = !transpose ? 'N' : is_complex<T> ? 'C' : 'T';
  Int lda = a.leading(), ldc = c.leading(), info = 0;
  auto run = [&](int64_t i, T* work, const Int* count) {
    Routines<T>::ormqr(&side, &op, &c.rows, &c.columns, &tau.size, a.at(i), &lda, tau.at(i),
                       c.at(i), &ldc, work, count, &info, 1, 1);
  };
  Work<T> work([&](T* space, const Int* count) { run(0, space, count); });
  for (int64_t i = 0; i < a.batch; ++i) run(i, work.data(), work.count());
}
LAMELLA_FOR_FOUR_TYPES(ormqr)

template <class T>
void gehrd(const ffi::CallFrame& frame) {
  LapackCall call(frame, 1, 3);
  Int low = call.integer("low"), high = call.integer("high");
  Matrices<T> a = call.taken_matrices<T>(0, 0);
  require_square(a.rows, a.columns);
  Vectors<T> tau = call.result_vectors<T>(1, std::max(a.rows - 1, 0));
  Int* info = call.info(2);
  LAMELLA_CHECK(
      low >= 1 && low <= std::max(1, a.rows) && high >= std::min(low, a.rows) && high <= a.rows,
      "expected attributes 'low' and 'high' to be rows of the matrix, counted from 1, got ", low,
      " and ", high, " for ", a.rows, " rows");
  Int lda = a.leading();
  auto run = [&](int64_t i, T* work, const Int* count, Int* said) {
    Routines<T>::gehrd(&a.rows, &low, &high, a.at(i), &lda, tau.at(i), work, count, said);
  };
  Int asked = 0;
  Work<T> work([&](T* space, const Int* count) { run(0, space, count, &asked); });
  for (int64_t i = 0; i < a.batch; ++i) run(i, work.data(), work.count(), info + i);
}
LAMELLA_FOR_FOUR_TYPES(gehrd)

template <class T>
void sytrd(const ffi::CallFrame& frame) {
  LapackCall call(frame, 1, 5);
  char uplo = call.letter("uplo", "LU");
  Matrices<T> a = call.taken_matrices<T>(0, 0);
  require_square(a.rows, a.columns);
  Int off = std::max(a.rows - 1, 0);
  Vectors<Real<T>> d = call.result_vectors<Real<T>>(1, a.rows);
  Vectors<Real<T>> e = call.result_vectors<Real<T>>(2, off);
  Vectors<T> tau = call.result_vectors<T>(3, off);
  Int* info = call.info(4);
  Int lda = a.leading();
  auto run = [&](int64_t i, T* work, const Int* count, Int* said) {
    Spacious<T> operand = a.spacious(i);
    Routines<T>::sytrd(&uplo, &a.rows, operand.data(), &lda, d.at(i), e.at(i), tau.at(i), work,
                       count, said, 1);
    operand.copy_back();
  };
  Int asked = 0;
  Work<T> work([&](T* space, const Int* count) { run(0, space, count, &asked); }, a.rows);
  for (int64_t i = 0; i < a.batch; ++i) run(i, work.data(), work.count(), info + i);
}
LAMELLA_FOR_FOUR_TYPES(sytrd)

}  // namespace lamella::hlo::lapack
