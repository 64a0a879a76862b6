// Derivatives of QR, singular values, eigenvalues and the pseudo-inverse.
#include "lamella/api/functions.h"
#include "lamella/api/tensor_operators.h"
#include "lamella/core/error.h"
#include "lamella/layers/autograd/formulas/linalg.h"
#include "lamella/layers/autograd/formulas/views.h"

namespace lamella {

namespace {

Tensor skew(const Tensor& X) { return X.sub(adjoint_of(X)); }
// Column j times number j, and row i times number i, of any real or complex dtype.
Tensor scale_columns(const Tensor& X, const Tensor& numbers) {
  return X.mul(numbers.unsqueeze(-2));
}
Tensor scale_rows(const Tensor& X, const Tensor& numbers) { return X.mul(numbers.unsqueeze(-1)); }
Tensor with_diagonal(const Tensor& X, const Tensor& diagonal) {
  return X.diagonal_scatter(diagonal.to(X.scalar_type()), 0, -2, -1);
}
// values_j - values_i, and 1 on the diagonal.
Tensor differences(const Tensor& values) {
  Tensor E = values.unsqueeze(-2).sub(values.unsqueeze(-1));
  return E.diagonal_scatter(lamella::ones_like(values), 0, -2, -1);
}
Tensor without_diagonal(const Tensor& X) { return X.tril(-1).add(X.triu(1)); }
Tensor plus(const Tensor& a, const Tensor& b) { return a.defined() ? a.add(b) : b; }

}  // namespace

// ---- QR ----

namespace {

// The gradient of A = Q R with a square R is (gQ + Q S) R^-H, where S is Hermitian and agrees with
// R gR^H - gQ^H Q below the diagonal.
Tensor qr_square_backward(const Tensor& gQ, const Tensor& gR, const Tensor& Q, const Tensor& R) {
  Tensor M;
  if (gR.defined()) M = R.matmul(adjoint_of(gR));
  if (gQ.defined()) {
    Tensor inner = adjoint_of(gQ).matmul(Q);
    M = M.defined() ? M.sub(inner) : inner.neg();
  }
  Tensor lower = M.tril(-1);
  Tensor S = lower.add(adjoint_of(lower));
  S = with_diagonal(S, lamella::real(M.diagonal(0, -2, -1)));
  Tensor right = Q.matmul(S);
  if (gQ.defined()) right = right.add(gQ);
  return lamella::linalg_solve_triangular(adjoint_of(R), right, false, false);
}

void check_mode(std::string_view mode, const Tensor& Q, const Tensor& R) {
  LAMELLA_CHECK(mode != "r",
                "linalg_qr: expected 'mode' to be reduced or complete where gradients ",
                "are wanted, got 'r', which does not keep Q");
  LAMELLA_CHECK(mode == "reduced" || Q.size(-1) <= R.size(-1),
                "linalg_qr: expected 'mode' to be reduced where 'A' has more rows than columns and "
                "gradients are wanted, got '",
                mode, "'");
}

}  // namespace

Tensor qr_backward(const Tensor& grad_Q, const Tensor& grad_R, const Tensor& Q, const Tensor& R,
                   std::string_view mode) {
  if (!grad_Q.defined() && !grad_R.defined()) return Tensor();
  check_mode(mode, Q, R);
  int64_t m = Q.size(-2), n = R.size(-1);
  if (m >= n) return qr_square_backward(grad_Q, grad_R, Q, R);
  // A = [X Y] and R = [U W], where X = Q U and Y = Q W.
  Tensor gU, gY, gQ = grad_Q;
  Tensor U = R.narrow(-1, 0, m);
  if (grad_R.defined()) {
    Tensor gW = grad_R.narrow(-1, m, n - m);
    gU = grad_R.narrow(-1, 0, m);
    gY = Q.matmul(gW);
    gQ = plus(gQ, lamella::matmul(Q.matmul(R.narrow(-1, m, n - m)), adjoint_of(gW)));
  }
  Tensor gX = qr_square_backward(gQ, gU, Q, U);
  if (!gY.defined()) gY = lamella::zeros_like(Q.matmul(R.narrow(-1, m, n - m)));
  return lamella::cat({gX, gY}, -1);
}

std::tuple<Tensor, Tensor> qr_forward(const Tensor& A_t, const Tensor& Q, const Tensor& R,
                                      std::string_view mode) {
  check_mode(mode, Q, R);
  int64_t m = Q.size(-2), n = R.size(-1), k = m < n ? m : n;
  Tensor square = R.narrow(-1, 0, k), dX = A_t.narrow(-1, 0, k);
  // C = Q^H dX R^-1 is skew-Hermitian plus upper triangular with a real diagonal.
  Tensor over = lamella::linalg_solve_triangular(square, dX, true, false);  // dX R^-1
  Tensor C = adjoint_of(Q).matmul(over);
  Tensor both = C.add(adjoint_of(C));
  Tensor upper = both.triu().add(both.triu(1)).mul(0.5);
  Tensor dR = upper.matmul(square);
  Tensor dQ = over.sub(Q.matmul(upper));
  if (n > k) {
    Tensor rest = adjoint_of(dQ).matmul(Q).matmul(R.narrow(-1, k, n - k));
    Tensor dW = adjoint_of(Q).matmul(A_t.narrow(-1, k, n - k)).add(rest);
    dR = lamella::cat({dR, dW}, -1);
  }
  return {dQ, dR};
}

// ---- Singular values ----

Tensor svd_backward(const Tensor& grad_U, const Tensor& grad_S, const Tensor& grad_Vh,
                    const Tensor& U_full, const Tensor& S, const Tensor& Vh_full) {
  if (!grad_U.defined() && !grad_S.defined() && !grad_Vh.defined()) return Tensor();
  int64_t k = S.size(-1);
  Tensor U = U_full.narrow(-1, 0, k), Vh = Vh_full.narrow(-2, 0, k);
  if (!grad_U.defined() && !grad_Vh.defined()) return scale_columns(U, grad_S).matmul(Vh);
  Tensor gU = grad_U.defined() ? grad_U.narrow(-1, 0, k) : Tensor();
  Tensor gV = grad_Vh.defined() ? adjoint_of(grad_Vh.narrow(-2, 0, k)) : Tensor();
  Tensor Uh = adjoint_of(U), V = adjoint_of(Vh);

  // (s_j - s_i)(s_j + s_i), more exact than the difference of squares.
  Tensor sum = S.unsqueeze(-2).add(S.unsqueeze(-1));
  Tensor E = differences(S).mul(sum);
  E = E.diagonal_scatter(lamella::ones_like(S), 0, -2, -1);
  Tensor inner;  // U^H gA V
  if (gU.defined()) {
    Tensor turn = skew(Uh.matmul(gU));
    inner = scale_columns(turn.div(E), S);
    // The diagonal contains the common phase of U and V.
    Tensor phase = turn.diagonal(0, -2, -1).div(S.mul(2));
    inner = with_diagonal(inner, phase);
  }
  if (gV.defined()) {
    Tensor part = without_diagonal(scale_rows(skew(Vh.matmul(gV)).div(E), S));
    inner = plus(inner, part);
  }
  if (grad_S.defined()) inner = inner.add(lamella::diag_embed(grad_S.to(inner.scalar_type())));
  Tensor result = U.matmul(inner).matmul(Vh);
  // The part outside of the column spaces of U and V.
  if (gU.defined() && U.size(-2) > k) {
    Tensor out = gU.sub(U.matmul(Uh.matmul(gU)));
    result = result.add(scale_columns(out, S.reciprocal()).matmul(Vh));
  }
  if (gV.defined() && V.size(-2) > k) {
    Tensor out = gV.sub(V.matmul(Vh.matmul(gV)));
    result = result.add(scale_columns(U, S.reciprocal()).matmul(adjoint_of(out)));
  }
  return result;
}

std::tuple<Tensor, Tensor, Tensor> svd_forward(const Tensor& A_t, const Tensor& U_full,
                                               const Tensor& S, const Tensor& Vh_full) {
  int64_t k = S.size(-1);
  Tensor U = U_full.narrow(-1, 0, k), Vh = Vh_full.narrow(-2, 0, k);
  Tensor Uh = adjoint_of(U), V = adjoint_of(Vh);
  Tensor P = Uh.matmul(A_t).matmul(V);
  Tensor dS = lamella::real(P.diagonal(0, -2, -1));
  Tensor sum = S.unsqueeze(-2).add(S.unsqueeze(-1));
  Tensor E = differences(S).mul(sum);
  E = E.diagonal_scatter(lamella::ones_like(S), 0, -2, -1);
  // Turns of U and of V: both skew-Hermitian, with P = turn_U S + dS - S turn_V.
  Tensor Ph = adjoint_of(P);
  Tensor turn_U = without_diagonal(scale_columns(P, S).add(scale_rows(Ph, S)).div(E));
  Tensor turn_V = without_diagonal(scale_rows(P, S).add(scale_columns(Ph, S)).div(E));
  if (U.is_complex()) {
    // The common phase of U and V is free; U takes all of it.
    Tensor diagonal = P.diagonal(0, -2, -1);
    turn_U = with_diagonal(turn_U, diagonal.sub(lamella::real(diagonal)).div(S));
  }
  Tensor dU = U.matmul(turn_U), dV = V.matmul(turn_V);
  if (U.size(-2) > k) {
    Tensor moved = A_t.matmul(V);
    dU = dU.add(scale_columns(moved.sub(U.matmul(Uh.matmul(moved))), S.reciprocal()));
  }
  if (V.size(-2) > k) {
    Tensor moved = adjoint_of(A_t).matmul(U);
    dV = dV.add(scale_columns(moved.sub(V.matmul(Vh.matmul(moved))), S.reciprocal()));
  }
  Tensor dVh = adjoint_of(dV);
  if (U_full.size(-1) > k) dU = lamella::constant_pad_nd(dU, {0, U_full.size(-1) - k}, 0);
  if (Vh_full.size(-2) > k) {
    dVh = lamella::constant_pad_nd(dVh, {0, 0, 0, Vh_full.size(-2) - k}, 0);
  }
  return {dU, dS, dVh};
}

// ---- Eigenvalues ----

Tensor eigh_backward(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& values,
                     const Tensor& vectors) {
  if (!grad_values.defined() && !grad_vectors.defined()) return Tensor();
  Tensor Vh = adjoint_of(vectors);
  if (!grad_vectors.defined()) return scale_columns(vectors, grad_values).matmul(Vh);
  // Vectors stay orthonormal, so only the skew-Hermitian part contributes.
  Tensor turn = skew(Vh.matmul(grad_vectors)).mul(0.5);
  Tensor inner = without_diagonal(turn.div(differences(values)));
  if (grad_values.defined()) inner = with_diagonal(inner, grad_values);
  return vectors.matmul(inner).matmul(Vh);
}
std::tuple<Tensor, Tensor> eigh_forward(const Tensor& A_t, const Tensor& values,
                                        const Tensor& vectors) {
  Tensor inner = adjoint_of(vectors).matmul(A_t).matmul(vectors);
  Tensor turn = without_diagonal(inner.div(differences(values)));
  return {lamella::real(inner.diagonal(0, -2, -1)), vectors.matmul(turn)};
}

Tensor eig_backward(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& values,
                    const Tensor& vectors) {
  if (!grad_values.defined() && !grad_vectors.defined()) return Tensor();
  Tensor Vh = adjoint_of(vectors);
  if (!grad_vectors.defined()) {
    return lamella::linalg_solve(Vh, scale_rows(Vh, grad_values));
  }
  // Vectors keep length 1, so the component that would change their length is removed.
  Tensor given = Vh.matmul(grad_vectors);
  Tensor lengths = lamella::real(given.diagonal(0, -2, -1));
  Tensor free = given.sub(scale_columns(Vh.matmul(vectors), lengths));
  Tensor inner = without_diagonal(free.div(conj_of(differences(values))));
  if (grad_values.defined()) inner = with_diagonal(inner, grad_values);
  return lamella::linalg_solve(Vh, inner.matmul(Vh));
}
std::tuple<Tensor, Tensor> eig_forward(const Tensor& A_t, const Tensor& values,
                                       const Tensor& vectors) {
  Tensor inner = lamella::linalg_solve(vectors, A_t.to(vectors.scalar_type()).matmul(vectors));
  Tensor turn = vectors.matmul(without_diagonal(inner.div(differences(values))));
  Tensor lengths = lamella::real(conj_of(vectors).mul(turn).sum(IntArrayRef(int64_t{-2})));
  return {inner.diagonal(0, -2, -1), turn.sub(scale_columns(vectors, lengths))};
}

// ---- Pseudo-inverse ----

namespace {
Tensor minus_identity(const Tensor& projection) {
  return lamella::eye(projection.size(-1), projection.options()).sub(projection);
}
}  // namespace

// dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P.
Tensor pinv_backward(const Tensor& grad, const Tensor& pinv, const Tensor& A) {
  Tensor Ph = adjoint_of(pinv), Gh = adjoint_of(grad);
  Tensor outside = minus_identity(A.matmul(pinv)).matmul(Gh).matmul(pinv).matmul(Ph);
  Tensor inside = Ph.matmul(pinv).matmul(Gh).matmul(minus_identity(pinv.matmul(A)));
  return outside.add(inside).sub(Ph.matmul(grad).matmul(Ph));
}
Tensor pinv_forward(const Tensor& A_t, const Tensor& pinv, const Tensor& A) {
  Tensor Ph = adjoint_of(pinv), dAh = adjoint_of(A_t);
  Tensor outside = pinv.matmul(Ph).matmul(dAh).matmul(minus_identity(A.matmul(pinv)));
  Tensor inside = minus_identity(pinv.matmul(A)).matmul(dAh).matmul(Ph).matmul(pinv);
  return outside.add(inside).sub(pinv.matmul(A_t).matmul(pinv));
}

// ---- Functions of matrices, least squares ----

namespace {
// exp of [A E; 0 A] has the derivative of exp at A in direction E as its upper right block. It is
// linear in E, which is brought to a norm of 1, as exp loses digits with the norm of all.
Tensor exp_derivative(const Tensor& A, const Tensor& E) {
  if (A.numel() == 0) return E;
  int64_t n = A.size(-1);
  Tensor norm = lamella::linalg_matrix_norm(E.detach(), 1).unsqueeze(-1).unsqueeze(-1);
  norm = lamella::where(lamella::isfinite(norm).logical_and(norm.gt(0)), norm, Scalar(1));
  Tensor upper = lamella::cat({A, E.div(norm)}, -1);
  Tensor lower = lamella::cat({lamella::zeros_like(A), A}, -1);
  Tensor both = lamella::linalg_matrix_exp(lamella::cat({upper, lower}, -2));
  return both.narrow(-2, 0, n).narrow(-1, n, n).mul(norm);
}
}  // namespace

Tensor matrix_exp_backward(const Tensor& grad, const Tensor& A) {
  return exp_derivative(adjoint_of(A), grad);
}
Tensor matrix_exp_forward(const Tensor& A_t, const Tensor& A_p) { return exp_derivative(A_p, A_t); }

std::tuple<Tensor, Tensor> lstsq_forward(const Tensor& A_t, const Tensor& A_p, const Tensor& b_t,
                                         const Tensor& b_p, const Tensor& solution,
                                         const Tensor& residuals) {
  bool vector = b_p.dim() < A_p.dim() && solution.dim() < A_p.dim();
  auto columns = [&](const Tensor& t) { return vector ? t.unsqueeze(-1) : t; };
  Tensor pinv = lamella::linalg_pinv(A_p, std::optional<Tensor>(), std::optional<Tensor>());
  Tensor moved = pinv_forward(A_t, pinv, A_p).matmul(columns(b_p)).add(pinv.matmul(columns(b_t)));
  Tensor residuals_t = lamella::zeros_like(residuals);
  if (residuals.numel() > 0) {
    // At the minimum, the residuals' derivative by the solution is zero.
    Tensor apart = A_p.matmul(columns(solution)).sub(columns(b_p));
    Tensor apart_t = A_t.matmul(columns(solution)).sub(columns(b_t));
    residuals_t = lamella::real(conj_of(apart).mul(apart_t)).sum(IntArrayRef(int64_t{-2})).mul(2);
  }
  return {vector ? moved.squeeze(-1) : moved, residuals_t};
}
std::tuple<Tensor, Tensor> lstsq_backward(const Tensor& grad_solution, const Tensor& grad_residuals,
                                          const Tensor& A, const Tensor& b, const Tensor& solution,
                                          std::array<bool, 2> wanted) {
  bool vector = b.dim() < A.dim() && solution.dim() < A.dim();
  auto columns = [&](const Tensor& t) { return vector ? t.unsqueeze(-1) : t; };
  Tensor grad_A, grad_b;
  if (grad_solution.defined()) {
    // The solution is pinv(A) b.
    Tensor pinv = lamella::linalg_pinv(A, std::optional<Tensor>(), std::optional<Tensor>());
    Tensor G = columns(grad_solution);
    grad_A = pinv_backward(G.matmul(adjoint_of(columns(b))), pinv, A);
    grad_b = adjoint_of(pinv).matmul(G);
  }
  if (grad_residuals.defined() && grad_residuals.numel() > 0) {
    // Sums of |A x - b|^2, whose derivative by x is zero at the minimum.
    Tensor apart = A.matmul(columns(solution)).sub(columns(b));
    Tensor weighted = apart.mul(grad_residuals.unsqueeze(-2)).mul(2);
    grad_A = plus(grad_A, weighted.matmul(adjoint_of(columns(solution))));
    grad_b = plus(grad_b, weighted.neg());
  }
  if (!grad_b.defined()) return {Tensor(), Tensor()};
  return {wanted[0] ? grad_A : Tensor(),
          wanted[1] ? (vector ? grad_b.squeeze(-1) : grad_b) : Tensor()};
}

}  // namespace lamella
