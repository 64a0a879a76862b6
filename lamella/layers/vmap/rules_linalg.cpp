// Rules for linear algebra where batching as a stack of matrices does not suffice: systems whose
// right-hand side may be a vector, permutations, and tolerances.
#include "lamella/layers/vmap/rules_common.h"

namespace lamella::vmap {
namespace {

using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

// True if the right-hand side is a vector, by the rule of the operators themselves.
bool has_shape_of_rows(const In& a, const In& b) {
  return a.rank() - 1 == b.rank() &&
         b.sizes().equals(a.sizes().slice(0, static_cast<size_t>(b.rank())));
}
In as_matrix(const In& b) { return {b.value.unsqueeze(-1), b.batched}; }

// Results that were not requested have shape [0], without the batch: it is put in front.
Tensor for_all(const BatchedCall& call, const Tensor& x) {
  return x.dim() == 1 && x.numel() == 0 ? front(call, {x, false}) : x;
}
void spectral(BatchedCall& call) {
  need_matrices(call);
  call.run_and([&](const Tensor& x) { return for_all(call, x); });
}

Four solve_ex(BatchedCall& call, In A, In B, bool left, bool check_errors) {
  LAMELLA_CHECK(A.rank() >= 2, "linalg_solve: expected 'A' to be a stack of square matrices, got ",
                A.sizes());
  bool vector = B.rank() == 1 || has_shape_of_rows(A, B);
  LAMELLA_CHECK(left || !vector,
                "linalg_solve: expected 'B' to be a matrix where 'left' is False, got ", B.sizes());
  In sides = vector ? as_matrix(B) : B;
  int64_t rank = std::max(A.rank(), sides.rank());
  auto [result, LU, pivots, info] =
      lamella::_linalg_solve_ex(front(call, A, rank), front(call, sides, rank), left, check_errors);
  return {vector ? result.squeeze(-1) : result, LU, pivots, info};
}
Tensor lu_solve(BatchedCall& call, In LU, In pivots, In B, bool left, bool adjoint) {
  int64_t rank = std::max(LU.rank(), B.rank());
  return lamella::linalg_lu_solve(front(call, LU, rank), front(call, pivots, rank - 1),
                                  front(call, B, rank), left, adjoint);
}
std::tuple<Tensor, Tensor, Tensor> lu_unpack(BatchedCall& call, In data, In pivots,
                                             bool unpack_data, bool unpack_pivots) {
  auto [P, L, U] =
      lamella::lu_unpack(front(call, data), front(call, pivots), unpack_data, unpack_pivots);
  return {for_all(call, P), for_all(call, L), for_all(call, U)};
}
Tensor pinv(BatchedCall& call, In self, In atol, In rtol, bool hermitian) {
  need_matrices(call);
  // Tolerances broadcast with the stack of matrices.
  int64_t rank = self.rank() - 2;
  for (const In* x : {&atol, &rtol}) rank = std::max(rank, x->defined() ? x->rank() : 0);
  auto tolerance = [&](const In& x) { return or_none(aligned(x, rank)); };
  return lamella::linalg_pinv(front(call, self, rank + 2), tolerance(atol), tolerance(rtol),
                              hermitian);
}
Four lstsq(BatchedCall& call, In self, In b, std::optional<double> rcond,
           std::optional<std::string_view> driver) {
  need_matrices(call);
  bool vector = has_shape_of_rows(self, b);
  In sides = vector ? as_matrix(b) : b;
  int64_t rank = std::max(self.rank(), sides.rank());
  auto [solution, residuals, ranks, values] =
      lamella::linalg_lstsq(front(call, self, rank), front(call, sides, rank), rcond, driver);
  return {vector ? solution.squeeze(-1) : solution, for_all(call, residuals), for_all(call, ranks),
          for_all(call, values)};
}
Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
            const Scalar& alpha) {
  LAMELLA_CHECK(vec1.dim() == 1, "addr: expected 'vec1' to have 1 dimension, got ", vec1.sizes());
  LAMELLA_CHECK(vec2.dim() == 1, "addr: expected 'vec2' to have 1 dimension, got ", vec2.sizes());
  Tensor product = lamella::outer(vec1, vec2).mul(alpha);
  if (beta.equal(0) || beta.equal(false)) {
    return product.to(lamella::promote_types(self.scalar_type(), product.scalar_type()));
  }
  return self.mul(beta).add(product);
}

constexpr NamedRule kRules[] = {
    {"spectral", &spectral},
    {"linalg_solve_ex", &typed<&solve_ex>},
    {"linalg_lu_solve", &typed<&lu_solve>},
    {"lu_unpack", &typed<&lu_unpack>},
    {"linalg_pinv", &typed<&pinv>},
    {"linalg_lstsq", &typed<&lstsq>},
    {"addr", &decomposed<&addr>},
};

}  // namespace

NamedRules linalg_rules() { return kRules; }

}  // namespace lamella::vmap
