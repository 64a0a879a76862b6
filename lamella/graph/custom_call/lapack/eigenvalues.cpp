// Eigenvalues of Hermitian and of general matrices, and the Schur decomposition.
#include <algorithm>

#include "lamella/graph/custom_call/lapack/call.h"
#include "lamella/graph/custom_call/lapack/handlers.h"

namespace lamella::hlo::lapack {
namespace {

// True if the upper or lower triangle of an n x n matrix, which the routine reads, is finite.
template <class T>
bool finite_triangle(const T* matrix, Int n, bool upper) {
  const auto rows = static_cast<size_t>(n);
  for (size_t j = 0; j < rows; ++j) {
    const T* column = matrix + j * rows;
    if (upper ? !all_finite(column, j + 1) : !all_finite(column + j, rows - j)) return false;
  }
  return true;
}

// LAPACK stores the eigenvectors of a conjugate pair as a column of real parts and a column of
// imaginary parts.
template <class R>
void unpack(const R* packed, const R* imaginary, Int n, std::complex<R>* vectors) {
  const auto rows = static_cast<size_t>(n);
  for (size_t j = 0; j < rows; ++j) {
    const R* column = packed + j * rows;
    bool pair = imaginary[j] != 0 && j + 1 < rows;
    for (size_t i = 0; i < rows; ++i) {
      if (!pair) {
        vectors[j * rows + i] = column[i];
        continue;
      }
      vectors[j * rows + i] = {column[i], column[rows + i]};
      vectors[(j + 1) * rows + i] = {column[i], -column[rows + i]};
    }
    j += pair ? 1 : 0;
  }
}

}  // namespace

template <class T>
void syevd(const ffi::CallFrame& frame) {
  LapackCall call(frame, 1, 3);
  char mode = call.letter("mode", "VN"), uplo = call.letter("uplo", "LU");
  Matrices<T> a = call.taken_matrices<T>(0, 0);
  require_square(a.rows, a.columns);
  Vectors<Real<T>> w = call.result_vectors<Real<T>>(1, a.rows);
  Int* info = call.info(2);
  Int lda = a.leading();
  require_countable(1 + a.rows * (6.0 + 2.0 * a.rows));
  auto run = [&](int64_t i, T* work, const Int* count, Real<T>* real, const Int* reals, Int* whole,
                 const Int* wholes, Int* said) {
    Spacious<T> operand = a.spacious(i);
    if constexpr (is_complex<T>) {
      Routines<T>::syevd(&mode, &uplo, &a.rows, operand.data(), &lda, w.at(i), work, count, real,
                         reals, whole, wholes, said, 1, 1);
    } else {
      Routines<T>::syevd(&mode, &uplo, &a.rows, operand.data(), &lda, w.at(i), work, count, whole,
                         wholes, said, 1, 1);
    }
    operand.copy_back();
  };
  T first{};
  Real<T> second{};
  Int third = 0, query = -1, said = 0;
  run(0, &first, &query, &second, &query, &third, &query, &said);
  Int count = wanted(first), reals = wanted(second), wholes = std::max(third, 1);
  std::vector<T> work(static_cast<size_t>(count) + static_cast<size_t>(a.rows) + 1);
  std::vector<Real<T>> real(static_cast<size_t>(reals));
  std::vector<Int> whole(static_cast<size_t>(wholes));
  const auto square = static_cast<size_t>(a.rows) * static_cast<size_t>(a.rows);
  for (int64_t i = 0; i < a.batch; ++i) {
    if (!finite_triangle(a.at(i), a.rows, uplo == 'U')) {
      info[i] = -4;
      std::fill_n(a.at(i), square, not_a_number<T>());
      std::fill_n(w.at(i), a.rows, not_a_number<Real<T>>());
      continue;
    }
    run(i, work.data(), &count, real.data(), &reals, whole.data(), &wholes, info + i);
  }
}
LAMELLA_FOR_FOUR_TYPES(syevd)

template <class T>
void geev(const ffi::CallFrame& frame) {
  using Complex = std::complex<Real<T>>;
  constexpr int64_t parts = is_complex<T> ? 1 : 2;
  LapackCall call(frame, 1, parts + 3);
  char left = call.letter("compute_left", "VN"), right = call.letter("compute_right", "VN");
  Matrices<const T> a = call.matrices<T>(0);
  require_square(a.rows, a.columns);
  Int n = a.rows, ld = a.leading();
  const auto square = static_cast<size_t>(n) * static_cast<size_t>(n);
  Vectors<T> values = call.result_vectors<T>(0, n);
  Vectors<T> imaginary = call.result_vectors<T>(parts - 1, n);  // of real matrices
  Matrices<Complex> vl = call.result_matrices<Complex>(parts, n, n);
  Matrices<Complex> vr = call.result_matrices<Complex>(parts + 1, n, n);
  Int* info = call.info(parts + 2);
  if (left == 'N') std::fill_n(vl.data, vl.elements(), Complex());
  if (right == 'N') std::fill_n(vr.data, vr.elements(), Complex());

  std::vector<T> copy(square + 1);
  std::vector<T> packed_left(is_complex<T> ? 1 : square + 1);
  std::vector<T> packed_right(is_complex<T> ? 1 : square + 1);
  std::vector<Real<T>> real(is_complex<T> ? 2 * static_cast<size_t>(n) + 1 : 1);
  auto run = [&](int64_t i, T* work, const Int* count, Int* said) {
    if constexpr (is_complex<T>) {
      Routines<T>::geev(&left, &right, &n, copy.data(), &ld, values.at(i), vl.at(i), &ld, vr.at(i),
                        &ld, work, count, real.data(), said, 1, 1);
    } else {
      Routines<T>::geev(&left, &right, &n, copy.data(), &ld, values.at(i), imaginary.at(i),
                        packed_left.data(), &ld, packed_right.data(), &ld, work, count, said, 1, 1);
    }
  };
  Int asked = 0;
  Work<T> work([&](T* space, const Int* count) { run(0, space, count, &asked); });
  for (int64_t i = 0; i < a.batch; ++i) {
    std::copy_n(a.at(i), square, copy.data());
    if (!all_finite(copy.data(), square)) {
      info[i] = -4;
      std::fill_n(values.at(i), n, not_a_number<T>());
      std::fill_n(imaginary.at(i), n, not_a_number<T>());
      if (left == 'V') std::fill_n(vl.at(i), square, not_a_number<Complex>());
      if (right == 'V') std::fill_n(vr.at(i), square, not_a_number<Complex>());
      continue;
    }
    run(i, work.data(), work.count(), info + i);
    if constexpr (!is_complex<T>) {
      if (left == 'V') unpack(packed_left.data(), imaginary.at(i), n, vl.at(i));
      if (right == 'V') unpack(packed_right.data(), imaginary.at(i), n, vr.at(i));
    }
  }
}
LAMELLA_FOR_FOUR_TYPES(geev)

template <class T>
void gees(const ffi::CallFrame& frame) {
  constexpr int64_t parts = is_complex<T> ? 1 : 2;
  LapackCall call(frame, 1, parts + 4);
  // Sorting needs a selection function, which the call cannot pass.
  char mode = call.letter("mode", "VN"), sort = call.letter("sort", "N");
  Matrices<T> a = call.taken_matrices<T>(0, 0);
  require_square(a.rows, a.columns);
  Int n = a.rows, ld = a.leading();
  Matrices<T> vs = call.result_matrices<T>(1, n, n);
  Vectors<T> values = call.result_vectors<T>(2, n);
  Vectors<T> imaginary = call.result_vectors<T>(parts + 1, n);  // of real matrices
  Int* selected = call.info(parts + 2);
  Int* info = call.info(parts + 3);
  if (mode == 'N') std::fill_n(vs.data, vs.elements(), T());

  std::vector<Real<T>> real(is_complex<T> ? static_cast<size_t>(n) + 1 : 1);
  Int unused = 0;
  auto run = [&](int64_t i, T* work, const Int* count, Int* said) {
    if constexpr (is_complex<T>) {
      Routines<T>::gees(&mode, &sort, nullptr, &n, a.at(i), &ld, selected + i, values.at(i),
                        vs.at(i), &ld, work, count, real.data(), &unused, said, 1, 1);
    } else {
      Routines<T>::gees(&mode, &sort, nullptr, &n, a.at(i), &ld, selected + i, values.at(i),
                        imaginary.at(i), vs.at(i), &ld, work, count, &unused, said, 1, 1);
    }
  };
  const auto square = static_cast<size_t>(n) * static_cast<size_t>(n);
  Int asked = 0;
  Work<T> work([&](T* space, const Int* count) { run(0, space, count, &asked); });
  for (int64_t i = 0; i < a.batch; ++i) {
    if (!all_finite(a.at(i), square)) {
      info[i] = -5;
      selected[i] = 0;
      std::fill_n(values.at(i), n, not_a_number<T>());
      std::fill_n(imaginary.at(i), n, not_a_number<T>());
      if (mode == 'V') std::fill_n(vs.at(i), square, not_a_number<T>());
      continue;
    }
    run(i, work.data(), work.count(), info + i);
  }
}
LAMELLA_FOR_FOUR_TYPES(gees)

}  // namespace lamella::hlo::lapack
