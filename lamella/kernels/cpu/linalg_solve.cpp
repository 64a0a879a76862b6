// Systems of linear equations, inverses and determinants, by way of LU.
#include "lamella/kernels/cpu/lapack.h"
#include "lamella/kernels/cpu/small_matrices.h"
#include "lamella/kernels/device_math.h"

namespace lamella::native {

namespace {

// True if 'B' is a stack of vectors rather than of matrices, by the rule of PyTorch and NumPy 1.
bool is_vector(const Tensor& A, const Tensor& B) {
  if (B.dim() == 1) return true;
  return A.dim() - 1 == B.dim() && B.sizes().equals(A.sizes().slice(0, A.sizes().size() - 1));
}

Tensor broadcast_matrices(const Tensor& a, const Dims& batch) {
  Dims shape = with_sizes(batch, a.size(-2), a.size(-1));
  return a.sizes().equals(shape) ? a : a.expand(shape);
}

// Solves op(A) X = B in place of `b`; op is numbered as in lamella_lapack.
void solve_factored(const char* name, const Tensor& LU, const Tensor& pivots, const Tensor& b,
                    int32_t op) {
  int64_t n = LU.size(-1), columns = b.size(-1);
  if (b.numel() == 0) return;
  if (!LU.is_cpu()) {
    DeviceFactor call = factor_call(DeviceFactor::kSolve, LU);
    call.count = b.numel() / (n * columns);
    call.k = columns;
    call.b = b.data_ptr();
    call.pivots = pivots.mutable_data_ptr<int32_t>();
    call.op = op;
    return factor_on_device(name, call);
  }
  const int64_t count = b.numel() / (n * columns);
  if (op == 0 && are_small(LU.scalar_type(), n, n)) {
    return solve_small(LU.scalar_type(), count, n, columns, LU.const_data_ptr(),
                       pivots.const_data_ptr<int32_t>(), b.data_ptr());
  }
  Stack factors(LU), rows(pivots, 1), sides(b);
  for (int64_t i = 0; i < count; ++i) {
    const auto* exchanges = static_cast<const int32_t*>(rows.at(i));
    check_lapack(
        name, lapack().getrs(static_cast<uint8_t>(LU.scalar_type()), op, n, columns, factors.at(i),
                             factors.leading(), exchanges, sides.at(i), sides.leading()));
  }
}

void check_same_dtype(const char* op, const Tensor& A, const Tensor& B, const char* name) {
  LAMELLA_CHECK(A.scalar_type() == B.scalar_type(), op, ": expected '", name, "' to be ",
                A.scalar_type(), ", got ", B.scalar_type());
}
}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> _linalg_solve_ex(const Tensor& A, const Tensor& B,
                                                            bool left, bool check_errors) {
  const char* op = "linalg_solve";
  check_square(op, A, "A");
  check_same_dtype(op, A, B, "B");
  bool vector = is_vector(A, B);
  LAMELLA_CHECK(left || !vector, op, ": expected 'B' to be a matrix where 'left' is False, got ",
                B.sizes());
  Tensor sides = vector ? B.unsqueeze(-1) : B;
  LAMELLA_CHECK(sides.dim() >= 2 && sides.size(left ? -2 : -1) == A.size(-1), op,
                ": expected 'B' to have ", A.size(-1), left ? " rows" : " columns", ", got ",
                B.sizes());
  Dims batch = broadcast_shapes(batch_of(A), batch_of(sides), op, "B");
  auto [LU, pivots, info] = lamella::linalg_lu_factor_ex(broadcast_matrices(A, batch));
  sides = broadcast_matrices(sides, batch);
  // X A = B is solved as A^T X^T = B^T.
  Tensor result = copy_columns(left ? sides : sides.mT());
  if (!A.is_meta()) {
    if (check_errors) check_info(op, info, "'A' to be invertible");
    solve_factored(op, LU, pivots, result, left ? 0 : 1);
  }
  if (!left) result = result.mT();
  return {vector ? result.squeeze(-1) : result, LU, pivots, info};
}

std::tuple<Tensor, Tensor> linalg_inv_ex(const Tensor& A, bool check_errors) {
  check_square("linalg_inv", A, "A");
  auto [LU, pivots, info] = lamella::linalg_lu_factor_ex(A);
  Tensor inverse = empty_columns(A.sizes(), A.scalar_type(), A.device());
  inverse.zero_();
  inverse.diagonal(0, -2, -1).fill_(1);
  if (!A.is_meta()) {
    if (check_errors) check_info("linalg_inv", info, "'A' to be invertible");
    solve_factored("linalg_inv", LU, pivots, inverse, 0);
  }
  return {inverse, info};
}

Tensor linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left,
                       bool adjoint) {
  const char* op = "linalg_lu_solve";
  check_square(op, LU, "LU");
  check_matrices(op, B, "B");
  check_same_dtype(op, LU, B, "B");
  LAMELLA_CHECK(B.size(left ? -2 : -1) == LU.size(-1), op, ": expected 'B' to have ", LU.size(-1),
                left ? " rows" : " columns", ", got ", B.sizes());
  Dims batch = broadcast_shapes(batch_of(LU), batch_of(B), op, "B");
  Tensor rows = contiguous_pivots(op, "pivots", pivots, batch, LU.size(-1), LU.size(-1));
  Tensor factors = copy_columns(broadcast_matrices(LU, batch));
  Tensor sides = broadcast_matrices(B, batch);
  // X A = B is A^H X^H = B^H, and X A^H = B is A X^H = B^H.
  Tensor result = copy_columns(left ? sides : sides.mH());
  if (!LU.is_meta()) solve_factored(op, factors, rows, result, left == adjoint ? 2 : 0);
  return left ? result : result.mH().resolve_conj();
}

namespace {
// 1 or -1 for each permutation.
Tensor sign_of(const Tensor& pivots, ScalarType dtype) {
  Tensor stay = lamella::arange(1, pivots.size(-1) + 1, pivots.options());
  Tensor odd = pivots.ne(stay).sum(-1).remainder(2);
  return odd.mul(-2).add(1).to(dtype);
}
}  // namespace

std::tuple<Tensor, Tensor, Tensor> _linalg_det(const Tensor& A) {
  check_square("linalg_det", A, "A");
  auto [LU, pivots, info] = lamella::linalg_lu_factor_ex(A);
  if (A.is_cpu() && are_small(A.scalar_type(), A.size(-1), A.size(-1))) {
    Tensor result = new_tensor(batch_of(A), A.scalar_type(), A.device());
    determinants_of_small(A.scalar_type(), result.numel(), A.size(-1), LU.const_data_ptr(),
                          pivots.const_data_ptr<int32_t>(), result.data_ptr());
    return {result, LU, pivots};
  }
  Tensor result = LU.diagonal(0, -2, -1).prod(-1).mul(sign_of(pivots, A.scalar_type()));
  return {result, LU, pivots};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> _linalg_slogdet(const Tensor& A) {
  check_square("linalg_slogdet", A, "A");
  auto [LU, pivots, info] = lamella::linalg_lu_factor_ex(A);
  Tensor diagonal = LU.diagonal(0, -2, -1);
  Tensor sign = diagonal.sgn().prod(-1).mul(sign_of(pivots, A.scalar_type()));
  return {sign, diagonal.abs().log().sum(-1), LU, pivots};
}

namespace {
// The solution by LU: an upper triangle is U beside L = 1, a lower one the transpose of U.
Tensor triangular_on_device(const char* op, const Tensor& matrices, const Tensor& b, bool upper,
                            bool left, bool unitriangular) {
  const int64_t n = matrices.size(-1);
  Tensor U = copy_columns(upper ? matrices.triu() : matrices.tril().mT());
  if (unitriangular) U.diagonal(0, -2, -1).fill_(1);
  Tensor stay = lamella::arange(1, n + 1, U.options().dtype(kInt));
  Tensor pivots = stay.expand(with_sizes(batch_of(U), n)).contiguous();
  // X A = B is A^T X^T = B^T.
  Tensor sides = left ? b : copy_columns(b.mT());
  solve_factored(op, U, pivots, sides, left == upper ? 0 : 1);
  return left ? sides : copy_columns(sides.mT());
}
}  // namespace

Tensor linalg_solve_triangular(const Tensor& self, const Tensor& B, bool upper, bool left,
                               bool unitriangular) {
  const char* op = "linalg_solve_triangular";
  check_square(op, self, "self");
  check_matrices(op, B, "B");
  check_same_dtype(op, self, B, "B");
  LAMELLA_CHECK(B.size(left ? -2 : -1) == self.size(-1), op, ": expected 'B' to have ",
                self.size(-1), left ? " rows" : " columns", ", got ", B.sizes());
  Dims batch = broadcast_shapes(batch_of(self), batch_of(B), op, "B");
  Tensor result = copy_columns(broadcast_matrices(B, batch));
  if (result.is_meta() || result.numel() == 0) return result;
  Tensor matrices = copy_columns(broadcast_matrices(self, batch));
  if (!self.is_cpu()) return triangular_on_device(op, matrices, result, upper, left, unitriangular);
  Stack triangles(matrices), sides(result);
  for (int64_t i = 0, count = product(batch); i < count; ++i) {
    check_lapack(op, lapack().trsm(static_cast<uint8_t>(self.scalar_type()), !left, upper, 0,
                                   unitriangular, result.size(-2), result.size(-1), triangles.at(i),
                                   triangles.leading(), sides.at(i), sides.leading()));
  }
  return result;
}

}  // namespace lamella::native
