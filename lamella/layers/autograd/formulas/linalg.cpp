// Derivatives of linear algebra: systems of equations, inverses, determinants, Cholesky, LU.
#include "lamella/layers/autograd/formulas/linalg.h"

#include <cmath>

#include "lamella/api/functions.h"
#include "lamella/api/tensor_operators.h"
#include "lamella/layers/autograd/formulas/common.h"

namespace lamella {

namespace {

Tensor identity_like(const Tensor& A) { return lamella::eye(A.size(-1), A.options()); }
// number * I for each matrix.
Tensor scaled_identity(const Tensor& number, const Tensor& A) {
  return number.unsqueeze(-1).unsqueeze(-1).mul(identity_like(A));
}
// Without an error for a singular A: the result then holds inf or NaN.
Tensor solve_unchecked(const Tensor& A, const Tensor& B) {
  return std::get<0>(lamella::linalg_solve_ex(A, B));
}
Tensor trace_of(const Tensor& matrices) { return matrices.diagonal(0, -2, -1).sum(-1); }

}  // namespace

// ---- Determinants ----

// Note [Adjugates]
//   The derivative of det A is the transposed adjugate, whose elements are A's cofactors: det(A)
//   A^-1 for an invertible A, and finite for every one. Where it is not differentiated again, the
//   factors that det A was computed of give it. Otherwise, for a matrix that is nearly singular, it
//   is a polynomial of A: U^H A V is split, with constant unitary U and V of A = U S V^H, such that
//   the kSmallest last rows and columns belong to the smallest singular values. The adjugate of
//   their Schur complement is computed without a division (D. K. Faddeev and V. N. Faddeeva,
//   Computational Methods of Linear Algebra, 1963), and the rest of the matrix is invertible.
namespace {
constexpr int64_t kSmallest = 8;

// number * matrices, with a number for each matrix.
Tensor times(const Tensor& number, const Tensor& matrices) {
  return number.unsqueeze(-1).unsqueeze(-1).mul(matrices);
}
double precision_of(const Tensor& A) {
  return A.scalar_type() == kDouble || A.scalar_type() == kComplexDouble ? 1e-16 : 1e-8;
}

// From factors of A whose zero pivots are replaced by tiny numbers; det(A) A^-1 then changes only
// by rounding.
Tensor adjugate_of_factors(const Tensor& A, const Tensor& LU, const Tensor& pivots) {
  Tensor diagonal = LU.diagonal(0, -2, -1);
  double precision = precision_of(A);
  Tensor tiny = diagonal.abs().amax(-1, true).mul(precision).clamp_min(std::pow(precision, 3));
  Tensor moved = lamella::where(diagonal.eq(0), tiny.to(A.scalar_type()), diagonal);
  Tensor stay = lamella::arange(1, pivots.size(-1) + 1, pivots.options());
  Tensor sign = pivots.ne(stay).sum(-1).remainder(2).mul(-2).add(1).to(A.scalar_type());
  Tensor det = moved.prod(-1).mul(sign);
  Tensor factors = LU.diagonal_scatter(moved, 0, -2, -1);
  return lamella::linalg_lu_solve(factors, pivots, scaled_identity(det, A));
}

// The adjugate without divisions by A's elements, and the determinant.
std::pair<Tensor, Tensor> polynomial_adjugate(const Tensor& A) {
  int64_t n = A.size(-1);
  Tensor one = identity_like(A), M = one.expand(A.sizes());
  for (int64_t k = 1; k < n; ++k) {
    Tensor product = A.matmul(M);
    M = times(trace_of(product).div(k), one).sub(product);
  }
  return {M, trace_of(A.matmul(M)).div(n)};
}

// As a function of A that may be differentiated again.
Tensor adjugate(const Tensor& A) {
  Tensor fixed = A.detach();
  fixed = lamella::where(lamella::isfinite(fixed), fixed, Scalar(0));
  auto [U, S, Vh] = lamella::_linalg_svd(fixed, false, true);
  Tensor sign = lamella::linalg_det(U.matmul(Vh));
  Tensor least = S.amax(-1).mul(std::sqrt(precision_of(A)));
  Tensor singular = S.select(-1, -1).le(least).unsqueeze(-1).unsqueeze(-1);
  // With the identity in place of what is not invertible, no infinity meets a zero.
  auto invertible = [](const Tensor& matrix, const Tensor& broken) {
    return lamella::where(broken, identity_like(matrix), matrix);
  };
  Tensor safe = invertible(A, singular);
  Tensor det = lamella::linalg_det(safe);
  Tensor regular = solve_unchecked(safe, scaled_identity(det, A));

  int64_t n = A.size(-1), k = n > kSmallest ? n - kSmallest : 0;
  Tensor B = adjoint_of(U).matmul(A).matmul(adjoint_of(Vh));
  Tensor all;
  if (k == 0) {
    all = polynomial_adjugate(B).first;
  } else {
    Tensor top = B.narrow(-2, 0, k), bottom = B.narrow(-2, k, n - k);
    Tensor large =
        invertible(top.narrow(-1, 0, k), S.select(-1, k - 1).le(least).unsqueeze(-1).unsqueeze(-1));
    Tensor right = solve_unchecked(large, top.narrow(-1, k, n - k));
    Tensor inverse = solve_unchecked(large, identity_like(large).expand(large.sizes()));
    Tensor left = bottom.narrow(-1, 0, k).matmul(inverse);
    auto [small, small_det] =
        polynomial_adjugate(bottom.narrow(-1, k, n - k).sub(left.matmul(top.narrow(-1, k, n - k))));
    Tensor corner = times(small_det, inverse).add(right.matmul(small).matmul(left));
    all = lamella::cat({lamella::cat({corner, right.matmul(small).neg()}, -1),
                        lamella::cat({small.matmul(left).neg(), small}, -1)},
                       -2);
    all = times(lamella::linalg_det(large), all);
  }
  Tensor deficient = times(sign, adjoint_of(Vh).matmul(all).matmul(adjoint_of(U)));
  return lamella::where(singular, deficient, regular);
}
}  // namespace

Tensor det_backward(const Tensor& grad, const Tensor& A, const Tensor& LU, const Tensor& pivots) {
  if (A.numel() == 0) return lamella::zeros_like(A);
  Tensor cofactors = differentiated_again(A) ? adjugate(A) : adjugate_of_factors(A, LU, pivots);
  return times(grad, adjoint_of(cofactors));
}
Tensor det_forward(const Tensor& A_t, const Tensor& A_p, const Tensor& LU, const Tensor& pivots,
                   const Tensor& result) {
  if (A_p.numel() == 0) return lamella::zeros_like(result);
  bool again = differentiated_again(A_p) && (lamella_tensor_requires_grad(A_p.impl()) != 0 ||
                                             (A_p.impl()->flags & LAMELLA_TENSOR_TANGENT) != 0);
  Tensor cofactors = again ? adjugate(A_p) : adjugate_of_factors(A_p, LU, pivots);
  return trace_of(cofactors.matmul(A_t));
}

Tensor slogdet_backward(const Tensor& grad_sign, const Tensor& grad_logabsdet, const Tensor& A,
                        const Tensor& sign) {
  // d log|det| = Re t and d sign = i Im(t) sign, where t = tr(A^-1 dA).
  Tensor number = grad_logabsdet;
  if (A.is_complex()) {
    if (number.defined()) number = number.to(A.scalar_type());
    if (grad_sign.defined()) {
      Tensor turn = lamella::imag(conj_of(grad_sign).mul(sign)).neg();
      Tensor phase = lamella::view_as_complex(
          lamella::stack({lamella::zeros_like(turn), turn}, -1).contiguous());
      number = number.defined() ? number.add(phase) : phase;
    }
  }
  if (!number.defined()) return Tensor();
  return solve_unchecked(adjoint_of(A), scaled_identity(number, A));
}
Tensor sign_forward(const Tensor& A_t, const Tensor& A_p, const Tensor& sign) {
  if (!A_p.is_complex()) return lamella::zeros_like(sign);
  Tensor t = trace_of(solve_unchecked(A_p, A_t));
  return t.sub(lamella::real(t)).mul(sign);
}
Tensor logabsdet_forward(const Tensor& A_t, const Tensor& A_p) {
  return lamella::real(trace_of(solve_unchecked(A_p, A_t)));
}

// ---- Inverses and systems ----

Tensor inverse_backward(const Tensor& grad, const Tensor& inverse) {
  Tensor adjoint = adjoint_of(inverse);
  return adjoint.matmul(grad).matmul(adjoint).neg();
}
Tensor inverse_forward(const Tensor& A_t, const Tensor& inverse) {
  return inverse.matmul(A_t).matmul(inverse).neg();
}

namespace {
// B may be a stack of vectors where A is one of matrices.
Tensor columns_of(const Tensor& B, bool vector) { return vector ? B.unsqueeze(-1) : B; }

// -dA X or -X dA seen from the gradient of B.
Tensor matrix_gradient(const Tensor& grad_B, const Tensor& X, bool left) {
  return (left ? grad_B.matmul(adjoint_of(X)) : adjoint_of(X).matmul(grad_B)).neg();
}
}  // namespace

std::tuple<Tensor, Tensor> solve_backward(const Tensor& grad, const Tensor& A, const Tensor& LU,
                                          const Tensor& pivots, const Tensor& result, bool left,
                                          std::array<bool, 2> wanted) {
  bool vector = result.dim() < A.dim();
  Tensor G = columns_of(grad, vector);
  Tensor grad_B = differentiated_again(A) ? lamella::linalg_solve(adjoint_of(A), G, left)
                                          : lamella::linalg_lu_solve(LU, pivots, G, left, true);
  Tensor grad_A = wanted[0] ? matrix_gradient(grad_B, columns_of(result, vector), left) : Tensor();
  return {grad_A, wanted[1] ? (vector ? grad_B.squeeze(-1) : grad_B) : Tensor()};
}
Tensor solve_forward(const Tensor& A_t, const Tensor& A_p, const Tensor& B_t, const Tensor& LU,
                     const Tensor& pivots, const Tensor& result, bool left) {
  bool vector = result.dim() < A_p.dim();
  Tensor X = columns_of(result, vector);
  Tensor rest =
      columns_of(B_t, vector && B_t.dim() < A_p.dim()).sub(left ? A_t.matmul(X) : X.matmul(A_t));
  Tensor tangent = lamella::linalg_solve(A_p, rest, left);
  return vector ? tangent.squeeze(-1) : tangent;
}

namespace {
// The part of a gradient that a triangular matrix has entries for.
Tensor triangle(const Tensor& matrix, bool upper, bool unitriangular) {
  int64_t skip = unitriangular ? 1 : 0;
  return upper ? matrix.triu(skip) : matrix.tril(-skip);
}
}  // namespace

std::tuple<Tensor, Tensor> solve_triangular_backward(const Tensor& grad, const Tensor& A,
                                                     const Tensor& result, bool upper, bool left,
                                                     bool unitriangular,
                                                     std::array<bool, 2> wanted) {
  Tensor grad_B =
      lamella::linalg_solve_triangular(adjoint_of(A), grad, !upper, left, unitriangular);
  Tensor grad_A;
  if (wanted[0]) {
    grad_A = triangle(matrix_gradient(grad_B, result, left), upper, unitriangular);
  }
  return {grad_A, wanted[1] ? grad_B : Tensor()};
}
Tensor solve_triangular_forward(const Tensor& A_t, const Tensor& A_p, const Tensor& B_t,
                                const Tensor& result, bool upper, bool left, bool unitriangular) {
  Tensor moved = triangle(A_t, upper, unitriangular);
  Tensor rest = B_t.sub(left ? moved.matmul(result) : result.matmul(moved));
  return lamella::linalg_solve_triangular(A_p, rest, upper, left, unitriangular);
}

// ---- Cholesky ----

namespace {
// The lower triangle with half of the diagonal.
Tensor half_lower(const Tensor& matrix) { return matrix.tril().add(matrix.tril(-1)).mul(0.5); }
// L^-1 X L^-H, or L^-H X L^-1.
Tensor between_inverses(const Tensor& L, const Tensor& X, bool adjoint_first) {
  Tensor Lh = adjoint_of(L);
  if (adjoint_first) {
    Tensor left = lamella::linalg_solve_triangular(Lh, X, true);
    return lamella::linalg_solve_triangular(L, left, false, false);
  }
  Tensor left = lamella::linalg_solve_triangular(L, X, false);
  return lamella::linalg_solve_triangular(Lh, left, true, false);
}
}  // namespace

Tensor cholesky_backward(const Tensor& grad, const Tensor& factor, bool upper) {
  Tensor L = upper ? adjoint_of(factor) : factor;
  Tensor G = upper ? adjoint_of(grad) : grad;
  // dL = L half_lower(L^-1 dA L^-H), seen from the other side; dA is Hermitian.
  Tensor inner = adjoint_of(L).matmul(G);
  return between_inverses(L, inner.tril().add(adjoint_of(inner.tril(-1))).mul(0.5), true);
}
Tensor cholesky_forward(const Tensor& A_t, const Tensor& factor, bool upper) {
  Tensor L = upper ? adjoint_of(factor) : factor;
  Tensor dL = L.matmul(half_lower(between_inverses(L, A_t, false)));
  return upper ? adjoint_of(dL) : dL;
}

namespace {
// -(H + H^H) L, or U's, for A = L L^H, where H is half of what A's inverse gathers.
Tensor factor_gradient(const Tensor& half, const Tensor& factor, bool upper) {
  Tensor whole = half.add(adjoint_of(half));
  return (upper ? factor.matmul(whole) : whole.matmul(factor)).neg();
}
// The tangent of L L^H, or of U^H U.
Tensor product_tangent(const Tensor& tangent, const Tensor& factor, bool upper) {
  Tensor half = upper ? adjoint_of(tangent).matmul(factor) : tangent.matmul(adjoint_of(factor));
  return half.add(adjoint_of(half));
}
}  // namespace

Tensor cholesky_inverse_backward(const Tensor& grad, const Tensor& factor, bool upper,
                                 const Tensor& inverse) {
  return factor_gradient(inverse.matmul(grad).matmul(inverse), factor, upper);
}
Tensor cholesky_inverse_forward(const Tensor& factor_t, const Tensor& factor_p, bool upper,
                                const Tensor& inverse) {
  return inverse.matmul(product_tangent(factor_t, factor_p, upper)).matmul(inverse).neg();
}
std::tuple<Tensor, Tensor> cholesky_solve_backward(const Tensor& grad, const Tensor& factor,
                                                   bool upper, const Tensor& result,
                                                   std::array<bool, 2> wanted) {
  Tensor grad_B = lamella::cholesky_solve(grad, factor, upper);
  Tensor grad_factor;
  if (wanted[1]) {
    grad_factor = factor_gradient(grad_B.matmul(adjoint_of(result)), factor, upper);
  }
  return {wanted[0] ? grad_B : Tensor(), grad_factor};
}
Tensor cholesky_solve_forward(const Tensor& B_t, const Tensor& factor_t, const Tensor& factor_p,
                              bool upper, const Tensor& result) {
  Tensor rest = B_t.sub(product_tangent(factor_t, factor_p, upper).matmul(result));
  return lamella::cholesky_solve(rest, factor_p, upper);
}

// ---- LU ----

namespace {
struct LuSizes {
  int64_t m, n, k;
  LuSizes(const Tensor& L, const Tensor& U) : m(L.size(-2)), n(U.size(-1)), k(L.size(-1)) {}
};
// The k x k parts, and what stands below L's and right of U's.
struct LuParts {
  Tensor L, U, below, right;
  LuParts(const Tensor& l, const Tensor& u, const LuSizes& s)
      : L(l.narrow(-2, 0, s.k)), U(u.narrow(-1, 0, s.k)) {
    if (s.m > s.k) below = l.narrow(-2, s.k, s.m - s.k);
    if (s.n > s.k) right = u.narrow(-1, s.k, s.n - s.k);
  }
};
// X with X U = B, and X with L X = B, where L has ones on its diagonal.
Tensor over_upper(const Tensor& B, const Tensor& U) {
  return lamella::linalg_solve_triangular(U, B, true, false);
}
Tensor under_lower(const Tensor& L, const Tensor& B) {
  return lamella::linalg_solve_triangular(L, B, false, true, true);
}
}  // namespace

Tensor lu_backward(const Tensor& grad_L, const Tensor& grad_U, const Tensor& P, const Tensor& L,
                   const Tensor& U) {
  if (!grad_L.defined() && !grad_U.defined()) return Tensor();
  LuSizes sizes(L, U);
  LuParts parts(L, U, sizes);
  Tensor gL = grad_L.defined() ? grad_L : lamella::zeros_like(L);
  Tensor gU = grad_U.defined() ? grad_U : lamella::zeros_like(U);
  LuParts grads(gL, gU, sizes);
  Tensor Lh = adjoint_of(parts.L), Uh = adjoint_of(parts.U);
  auto over_adjoint = [&](const Tensor& B) {  // B U^-H
    return lamella::linalg_solve_triangular(Uh, B, false, false);
  };
  auto under_adjoint = [&](const Tensor& B) {  // L^-H B
    return lamella::linalg_solve_triangular(Lh, B, true, true, true);
  };
  Tensor below, right;
  if (parts.below.defined()) {
    // L2 = A2 U^-1
    below = over_adjoint(grads.below);
    grads.U = grads.U.sub(adjoint_of(parts.below).matmul(below));
  }
  if (parts.right.defined()) {
    // U2 = L^-1 A2
    right = under_adjoint(grads.right);
    grads.L = grads.L.sub(right.matmul(adjoint_of(parts.right)));
  }
  Tensor inner = Lh.matmul(grads.L).tril(-1).add(grads.U.matmul(Uh).triu());
  Tensor gA = under_adjoint(over_adjoint(inner));
  if (below.defined()) gA = lamella::cat({gA, below}, -2);
  if (right.defined()) gA = lamella::cat({gA, right}, -1);
  return P.matmul(gA);
}

std::tuple<Tensor, Tensor> lu_forward(const Tensor& A_t, const Tensor& P, const Tensor& L,
                                      const Tensor& U) {
  LuSizes sizes(L, U);
  LuParts parts(L, U, sizes);
  Tensor dA = P.transpose(-2, -1).matmul(A_t);
  Tensor square = dA.narrow(-2, 0, sizes.k).narrow(-1, 0, sizes.k);
  Tensor inner = under_lower(parts.L, over_upper(square, parts.U));
  Tensor dL = parts.L.matmul(inner.tril(-1));
  Tensor dU = inner.triu().matmul(parts.U);
  if (parts.below.defined()) {
    Tensor rest = dA.narrow(-2, sizes.k, sizes.m - sizes.k).sub(parts.below.matmul(dU));
    dL = lamella::cat({dL, over_upper(rest, parts.U)}, -2);
  }
  if (parts.right.defined()) {
    Tensor rest = dA.narrow(-1, sizes.k, sizes.n - sizes.k).sub(dL.matmul(parts.right));
    dU = lamella::cat({dU, under_lower(parts.L, rest)}, -1);
  }
  return {dL, dU};
}

namespace {
// The gradient or tangent of the packed form: L's part below the diagonal, U's on and above it.
Tensor packed(const Tensor& L, const Tensor& U) {
  LuSizes sizes(L, U);
  Tensor lower = L.tril(-1), upper = U.triu();
  if (sizes.n > sizes.k) {
    lower = lamella::constant_pad_nd(lower, {0, sizes.n - sizes.k}, 0);
  }
  if (sizes.m > sizes.k) {
    upper = lamella::constant_pad_nd(upper, {0, 0, 0, sizes.m - sizes.k}, 0);
  }
  return lower.add(upper);
}
}  // namespace

Tensor lu_unpack_backward(const Tensor& grad_L, const Tensor& grad_U, IntArrayRef sizes) {
  if (!grad_L.defined() && !grad_U.defined()) return Tensor();
  int64_t m = sizes[sizes.size() - 2], n = sizes[sizes.size() - 1];
  Tensor result;
  if (grad_L.defined()) {
    result = grad_L.tril(-1);
    if (n > m) result = lamella::constant_pad_nd(result, {0, n - m}, 0);
  }
  if (grad_U.defined()) {
    Tensor upper = grad_U.triu();
    if (m > n) upper = lamella::constant_pad_nd(upper, {0, 0, 0, m - n}, 0);
    result = result.defined() ? result.add(upper) : upper;
  }
  return result;
}

std::tuple<Tensor, Tensor> lu_solve_backward(const Tensor& grad, const Tensor& LU,
                                             const Tensor& pivots, const Tensor& result, bool left,
                                             bool adjoint, std::array<bool, 2> wanted) {
  Tensor grad_B = lamella::linalg_lu_solve(LU, pivots, grad, left, !adjoint);
  if (!wanted[0]) return {Tensor(), grad_B};
  // The gradient of the matrix that was solved with: A = P L U, or its adjoint.
  Tensor grad_A = matrix_gradient(grad_B, result, left);
  if (adjoint) grad_A = adjoint_of(grad_A);
  auto [P, L, U] = lamella::lu_unpack(LU, pivots);
  Tensor moved = P.transpose(-2, -1).matmul(grad_A);
  Tensor grad_LU = moved.matmul(adjoint_of(U)).tril(-1).add(adjoint_of(L).matmul(moved).triu());
  return {grad_LU, wanted[1] ? grad_B : Tensor()};
}
Tensor lu_solve_forward(const Tensor& LU_t, const Tensor& LU_p, const Tensor& pivots,
                        const Tensor& B_t, const Tensor& result, bool left, bool adjoint) {
  auto [P, L, U] = lamella::lu_unpack(LU_p, pivots);
  Tensor moved = P.matmul(LU_t.tril(-1).matmul(U).add(L.matmul(LU_t.triu())));
  if (adjoint) moved = adjoint_of(moved);
  Tensor rest = B_t.sub(left ? moved.matmul(result) : result.matmul(moved));
  return lamella::linalg_lu_solve(LU_p, pivots, rest, left, adjoint);
}

Tensor lu_factor_backward(const Tensor& grad, const Tensor& A) {
  auto [P, L, U] = lamella::linalg_lu(A);
  LuSizes sizes(L, U);
  return lu_backward(grad.narrow(-1, 0, sizes.k).tril(-1), grad.narrow(-2, 0, sizes.k).triu(), P, L,
                     U);
}
Tensor lu_factor_forward(const Tensor& A_t, const Tensor& A_p) {
  auto [P, L, U] = lamella::linalg_lu(A_p);
  auto [dL, dU] = lu_forward(A_t, P, L, U);
  return packed(dL, dU);
}

}  // namespace lamella
