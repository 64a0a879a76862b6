// Decompositions of matrices and solvers (XLA's client/lib/qr.h, svd.h, self_adjoint_eig.h,
// lu_decomposition.h, logdet.h and tridiagonal.h). Dimensions before the last two are batches. All
// but the tridiagonal solvers are custom calls of Lamella's operators.
#pragma once
#include "lamella/graph/builder/builder.h"

namespace lamella::hlo {

// r in the upper triangle, and the Householder vectors below it, as LAPACK's geqrf gives them.
struct QrDecomposition {
  Op q_and_r, taus;
};
QrDecomposition Qr(Operand a);
// The first columns of q, of a's shape.
Op ProductOfElementaryHouseholderReflectors(Operand a, Op taus);
// a = q r, with a square q if `full_matrices`.
void QrExplicit(Operand a, bool full_matrices, Op& q, Op& r);

// a = u diag(d) v^H with square u and v and descending d. Iterations, tolerance and precision are
// hints to other compilers.
struct SVDResult {
  Op u, d, v;
};
SVDResult SVD(Operand a, int64_t max_iter = 100, float epsilon = 1e-6f,
              PrecisionConfig::Precision precision = PrecisionConfig::HIGHEST);

// a v = v diag(w) with ascending w, of the Hermitian matrices whose lower or upper triangle a has.
struct SelfAdjointEigResult {
  Op v, w;
};
SelfAdjointEigResult SelfAdjointEig(Operand a, bool lower = true, int64_t max_iter = 15,
                                    float tol = 1e-5f, bool sort_eigenvalues = true);

// The rows of a in the order `permutation` are l u; `pivots` are the rows exchanged with row 0, 1,
// ... (S32).
struct LuDecompositionResult {
  Op lu, pivots, permutation;
};
LuDecompositionResult LuDecomposition(Operand a);

// The sign of the determinant, and the logarithm of its magnitude.
struct SignAndLogDet {
  Op sign, logdet;
};
SignAndLogDet SLogDet(Operand a);
// NaN for negative determinants.
Op LogDet(Operand a);

namespace tridiagonal {

enum SolverAlgorithm { kThomas };
// Diagonals are [..., 1, m], with unused lower[0] and upper[m - 1]; rhs is [..., k, m].
StatusOr<Op> TridiagonalSolver(SolverAlgorithm algorithm, Op lower_diagonal, Op main_diagonal,
                               Op upper_diagonal, Op rhs);
// The upper, main and lower diagonal are rows 0, 1 and 2 of [..., 3, m]; rhs is [..., m, k].
StatusOr<Op> TridiagonalSolver(SolverAlgorithm algorithm, Op diagonals, Op rhs);
// The product with rhs, [..., m, n].
StatusOr<Op> TridiagonalMatMul(Op upper_diagonal, Op main_diagonal, Op lower_diagonal, Op rhs);

}  // namespace tridiagonal
}  // namespace lamella::hlo
