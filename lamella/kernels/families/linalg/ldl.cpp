// The factorisation L D L^T, or L D L^H, of symmetric and Hermitian matrices with the pivots of
// Bunch and Kaufman, and the solution of systems of equations by it. LAPACK reads the lower
// triangle.
#include "lamella/core/interrupt.h"
#include "lamella/kernels/cpu/blas_library.h"
#include "lamella/kernels/families/families.h"

namespace aten::native {
namespace {

void check_square(const char* op, const char* name, const Tensor& a) {
  LAMELLA_CHECK(a.dim() >= 2 && a.size(-1) == a.size(-2), op, ": expected '", name,
                "' to be a stack of square matrices, got ", a.sizes());
  LAMELLA_CHECK_TYPE(a.scalar_type() == kFloat || a.scalar_type() == kDouble ||
                         a.scalar_type() == kComplexFloat || a.scalar_type() == kComplexDouble,
                     op, ": expected '", name,
                     "' to be float32, float64, complex64 or complex128, got ", a.scalar_type());
}

void check_status(const char* op, int32_t info) {
  LAMELLA_CHECK(info != LAMELLA_LAPACK_NO_MEMORY, op, ": not enough memory for the work space");
  LAMELLA_CHECK(info != LAMELLA_LAPACK_TOO_LARGE, op,
                ": expected a matrix with fewer rows and columns, got one whose sizes are more "
                "than LAPACK counts in 32 bits");
  LAMELLA_INTERNAL_ASSERT(info >= 0, op, ": LAPACK refuses argument ", -info);
}

// A copy with column-major matrices.
Tensor columns_of(const Tensor& a) { return a.mT().clone(MemoryFormat::Contiguous).mT(); }

// Throws unless every pivot is a valid row number, and blocks of two rows, whose pivots are
// negative, are complete: LAPACK accesses rows by them without a check.
void check_pivots(const char* op, const int32_t* pivots, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = std::abs(int64_t{pivots[i]});
    LAMELLA_CHECK(row >= 1 && row <= n, op,
                  ": expected the elements of 'pivots' to name rows in [1, ", n, "], got ",
                  pivots[i]);
  }
  for (int64_t i = 0; i < n; ++i) {
    if (pivots[i] > 0) continue;
    LAMELLA_CHECK(i + 1 < n && pivots[i + 1] < 0, op,
                  ": expected negative elements of 'pivots' in pairs, got ", pivots[i], " alone");
    ++i;
  }
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> linalg_ldl_factor_ex(const Tensor& self, bool hermitian,
                                                        bool check_errors) {
  const char* op = check_errors ? "linalg_ldl_factor" : "linalg_ldl_factor_ex";
  check_square(op, "self", self);
  const int64_t n = self.size(-1);
  const auto whole = self.options().dtype(kInt);
  Dims batch(self.sizes().begin(), self.sizes().end() - 2), rows = batch;
  rows.push_back(n);
  const Tensor LD = columns_of(self.tril());
  const Tensor pivots = lamella::empty(rows, whole), info = lamella::zeros(batch, whole);
  if (self.is_meta() || self.numel() == 0) return {LD, pivots, info};
  auto* at = static_cast<char*>(LD.mutable_data_ptr());
  auto* places = pivots.mutable_data_ptr<int32_t>();
  auto* infos = info.mutable_data_ptr<int32_t>();
  const int64_t bytes = n * n * static_cast<int64_t>(self.element_size());
  for (int64_t i = 0; i < info.numel(); ++i) {
    check_interrupt();
    infos[i] = lamella::native::blas_library().lapack->sytrf(
        static_cast<uint8_t>(self.scalar_type()), hermitian, n, at + i * bytes, n, places + i * n);
    check_status(op, infos[i]);
    LAMELLA_CHECK_LINALG(!check_errors || infos[i] == 0, op, ": expected matrix ", i,
                         " of 'self' to be invertible, got one where element ", infos[i],
                         " of the diagonal of D is 0");
  }
  return {LD, pivots, info};
}

std::tuple<Tensor, Tensor> linalg_ldl_factor(const Tensor& self, bool hermitian) {
  auto [LD, pivots, info] = aten::linalg_ldl_factor_ex(self, hermitian, true);
  return {LD, pivots};
}

Tensor linalg_ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian) {
  const char* op = "linalg_ldl_solve";
  check_square(op, "LD", LD);
  const Dims rows(LD.sizes().begin(), LD.sizes().end() - 1);
  LAMELLA_CHECK(pivots.sizes() == IntArrayRef(rows), op, ": expected 'pivots' to have the shape ",
                IntArrayRef(rows), ", got ", pivots.sizes());
  return aten::_linalg_ldl_solve(LD, pivots.unsqueeze(-1), B, hermitian);
}

// `pivots` has a column for each matrix, so that all three operands are stacks of matrices, which
// are broadcast.
Tensor _linalg_ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian) {
  const char* op = "linalg_ldl_solve";
  check_square(op, "LD", LD);
  const int64_t n = LD.size(-1);
  LAMELLA_CHECK(B.dim() >= 2 && B.size(-2) == n, op, ": expected 'B' to be a stack of matrices of ",
                n, " rows, got ", B.sizes());
  LAMELLA_CHECK_TYPE(B.scalar_type() == LD.scalar_type(), op, ": expected 'B' to be ",
                     LD.scalar_type(), ", got ", B.scalar_type());
  LAMELLA_CHECK_TYPE(pivots.scalar_type() == kInt, op, ": expected 'pivots' to be int32, got ",
                     pivots.scalar_type());
  LAMELLA_CHECK(pivots.dim() >= 2 && pivots.size(-2) == n && pivots.size(-1) == 1, op,
                ": expected 'pivots' to be a stack of columns of ", n, " rows, got ",
                pivots.sizes());
  const Dims batch = broadcast(op, "B", LD.sizes().slice(0, static_cast<size_t>(LD.dim() - 2)),
                               B.sizes().slice(0, static_cast<size_t>(B.dim() - 2)));
  Dims square = batch, sides = batch, line = batch;
  square.insert(square.end(), {n, n});
  sides.insert(sides.end(), {n, B.size(-1)});
  line.insert(line.end(), {n, 1});
  const Tensor result = columns_of(B.expand(sides));
  if (B.is_meta() || result.numel() == 0) return result;
  const Tensor factors = columns_of(LD.expand(square)), places = pivots.expand(line).contiguous();
  const auto* a = static_cast<const char*>(factors.const_data_ptr());
  const auto* p = places.const_data_ptr<int32_t>();
  auto* x = static_cast<char*>(result.mutable_data_ptr());
  const int64_t bytes = n * static_cast<int64_t>(B.element_size());
  for (int64_t i = 0, columns = B.size(-1), count = places.numel() / n; i < count; ++i) {
    check_interrupt();
    check_pivots(op, p + i * n, n);
    check_status(op, lamella::native::blas_library().lapack->sytrs(
                         static_cast<uint8_t>(B.scalar_type()), hermitian, n, columns,
                         a + i * n * bytes, n, p + i * n, x + i * columns * bytes, n));
  }
  return result;
}

}  // namespace aten::native
