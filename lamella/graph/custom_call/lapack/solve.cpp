// Solvers of triangular and tridiagonal systems.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lamella/graph/custom_call/lapack/call.h"
#include "lamella/graph/custom_call/lapack/handlers.h"

namespace lamella::hlo::lapack {

template <class T>
void trsm(const ffi::CallFrame& frame) {
  LapackCall call(frame, 2, 1);
  char side = call.letter("side", "LR"), uplo = call.letter("uplo", "LU");
  char trans = call.letter("trans_x", "NTC"), diag = call.letter("diag", "NU");
  Matrices<const T> a = call.matrices<T>(0);
  Matrices<T> b = call.taken_matrices<T>(1, 0);
  Int order = side == 'L' ? b.rows : b.columns;
  LapackCall::require_size("operand", 0, "rows", order, a.rows);
  LapackCall::require_size("operand", 0, "columns", order, a.columns);
  Int lda = a.leading(), ldb = b.leading();
  const T one(1);
  for (int64_t i = 0; i < b.batch; ++i) {
    Routines<T>::trsm(&side, &uplo, &trans, &diag, &b.rows, &b.columns, &one, a.at(i), &lda,
                      b.at(i), &ldb, 1, 1, 1, 1);
  }
}
LAMELLA_FOR_FOUR_TYPES(trsm)

template <class T>
void gtsv(const ffi::CallFrame& frame) {
  LapackCall call(frame, 4, 5, 1);
  Vectors<T> dl = call.taken_vectors<T>(0, 0), d = call.taken_vectors<T>(1, 1);
  Vectors<T> du = call.taken_vectors<T>(2, 2);
  Matrices<T> b = call.taken_matrices<T>(3, 3);
  Int* info = call.info(4);
  LapackCall::require_size("operand", 0, "elements", b.rows, dl.size);
  LapackCall::require_size("operand", 1, "elements", b.rows, d.size);
  LapackCall::require_size("operand", 2, "elements", b.rows, du.size);
  Int ldb = b.leading();
  for (int64_t i = 0; i < b.batch; ++i) {
    // Each diagonal has n elements; the first element of dl and the last of du are unused.
    Routines<T>::gtsv(&b.rows, &b.columns, dl.at(i) + (b.rows > 0 ? 1 : 0), d.at(i), du.at(i),
                      b.at(i), &ldb, info + i);
  }
}
LAMELLA_FOR_FOUR_TYPES(gtsv)

// Note [Perturbed pivots]
//   Inverse iteration solves systems that are singular up to rounding and needs only the direction
//   of the solution. So if a row cannot be divided by a pivot below 1 without overflow, eps times
//   the largest entry of U, with the pivot's sign, is added to the pivot, and the amount is doubled
//   until the division is possible, as in xLAGTS.
namespace {

template <class T>
Real<T> magnitude(const T& value) {
  return std::max(std::abs(std::real(value)), std::abs(std::imag(value)));
}

// Solves A x = b and stores x in b, which is n x columns. Overwrites the diagonals; u2 is scratch
// space of n elements.
template <class T>
void solve_perturbed(Int n, Int columns, const T* dl, T* d, T* du, T* u2, T* b) {
  using R = Real<T>;
  auto at = [&](Int row, Int column) -> T& {
    return b[static_cast<size_t>(column) * static_cast<size_t>(n) + static_cast<size_t>(row)];
  };
  // A = P L U; U has the diagonals d, du, u2.
  for (Int i = 0; i + 1 < n; ++i) {
    const T below = dl[i + 1], next = i + 2 < n ? du[i + 1] : T();
    u2[i] = T();
    if (magnitude(below) > magnitude(d[i])) {
      T factor = d[i] / below, above = du[i];
      d[i] = below;
      du[i] = d[i + 1];
      u2[i] = next;
      d[i + 1] = above - factor * du[i];
      if (i + 2 < n) du[i + 1] = -factor * next;
      for (Int j = 0; j < columns; ++j) {
        std::swap(at(i, j), at(i + 1, j));
        at(i + 1, j) -= factor * at(i, j);
      }
    } else if (below != T()) {
      T factor = below / d[i];
      d[i + 1] -= factor * du[i];
      for (Int j = 0; j < columns; ++j) at(i + 1, j) -= factor * at(i, j);
    }
  }
  const R smallest = std::numeric_limits<R>::min();
  R largest = 0;
  for (Int i = 0; i < n; ++i) {
    R entries[] = {magnitude(d[i]), i + 1 < n ? magnitude(du[i]) : R(),
                   i + 2 < n ? magnitude(u2[i]) : R()};
    for (R entry : entries) {
      if (std::isfinite(entry)) largest = std::max(largest, entry);
    }
  }
  const R amount = std::max(largest * std::numeric_limits<R>::epsilon(), smallest);
  for (Int i = n; i-- > 0;) {
    R right = 0;
    for (Int j = 0; j < columns; ++j) {
      if (i + 1 < n) at(i, j) -= du[i] * at(i + 1, j);
      if (i + 2 < n) at(i, j) -= u2[i] * at(i + 2, j);
      right = std::max(right, magnitude(at(i, j)));
    }
    T pivot = d[i];
    R add = std::copysign(amount, std::real(pivot));
    for (R size = magnitude(pivot); size < 1 && (size < smallest || right > size / smallest);
         size = magnitude(pivot)) {
      pivot += add;
      add *= 2;
    }
    for (Int j = 0; j < columns; ++j) at(i, j) /= pivot;
  }
}

template <class T>
void solve_all(const ffi::CallFrame& frame) {
  LapackCall call(frame, 4, 1, 1);
  Vectors<const T> dl = call.vectors<T>(0), d = call.vectors<T>(1), du = call.vectors<T>(2);
  Matrices<T> x = call.taken_matrices<T>(3, 0);
  LapackCall::require_size("operand", 0, "elements", x.rows, dl.size);
  LapackCall::require_size("operand", 1, "elements", x.rows, d.size);
  LapackCall::require_size("operand", 2, "elements", x.rows, du.size);
  const auto n = static_cast<size_t>(x.rows);
  std::vector<T> space(3 * n);
  for (int64_t i = 0; i < x.batch; ++i) {
    std::copy_n(d.at(i), n, space.data());
    std::copy_n(du.at(i), n, space.data() + n);
    solve_perturbed(x.rows, x.columns, dl.at(i), space.data(), space.data() + n,
                    space.data() + 2 * n, x.at(i));
  }
}

}  // namespace

void tridiagonal_perturbed(const ffi::CallFrame& frame) {
  LAMELLA_CHECK(frame.args.size == 4, "expected 4 operands, got ", frame.args.size);
  ElementType type = element_type_of(frame, 3);
  switch (type) {
    case ElementType::F32:
      return solve_all<float>(frame);
    case ElementType::F64:
      return solve_all<double>(frame);
    case ElementType::C64:
      return solve_all<c64>(frame);
    case ElementType::C128:
      return solve_all<c128>(frame);
    default:
      throw Error(str("expected operand 3 to be f32, f64, c64 or c128, got ", element_name(type)));
  }
}

}  // namespace lamella::hlo::lapack
