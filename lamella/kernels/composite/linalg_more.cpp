// Linear algebra made of other operators: matrix_exp, least squares, inverses and systems of
// tensors, older names of LU and of triangular systems, distances.
#include "lamella/core/checked_size.h"
#include "lamella/kernels/distances.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

Tensor linalg_matrix_exp(const Tensor& self) {
  const char* op = "linalg_matrix_exp";
  LAMELLA_CHECK(self.dim() >= 2 && self.size(-1) == self.size(-2), op,
                ": expected 'self' to be a stack of square matrices, got ", self.sizes());
  LAMELLA_CHECK(self.is_floating_point() || self.is_complex(), op,
                ": expected 'self' to be floating point or complex, got ", self.scalar_type());
  if (self.numel() == 0 || self.is_meta()) return lamella::empty_like(self);
  if (self.size(-1) == 1) return self.exp();
  if (self.scalar_type() == kHalf || self.scalar_type() == kBFloat16) {
    return lamella::linalg_matrix_exp(self.to(kFloat)).to(self.scalar_type());
  }
  // exp(A) = exp(A / 2^s)^(2^s). Each squaring doubles the error, so each matrix has the smallest s
  // for which 14 terms of the series are exact in the dtype.
  ScalarType real = self.is_complex() ? to_real_type(self.scalar_type()) : self.scalar_type();
  const double largest = real == kDouble ? 0.5 : 2;
  Tensor norm = lamella::linalg_matrix_norm(self, 1).to(kDouble).unsqueeze(-1).unsqueeze(-1);
  Tensor scaled = lamella::isfinite(norm).logical_and(norm.gt(largest));
  Tensor halvings = lamella::where(scaled, norm.div(largest).log2().ceil(), Scalar(0));
  Tensor A = self.mul(halvings.neg().exp2().to(real));
  Tensor one = lamella::eye(self.size(-1), self.options()).expand(self.sizes());
  constexpr int kTerms = 14;
  Tensor sum = one.add(A, 1.0 / kTerms);
  for (int k = kTerms - 1; k > 0; --k) sum = one.add(A.matmul(sum), 1.0 / k);
  double most = halvings.max().item().toDouble();
  for (int i = 0; i < most; ++i) {
    sum = lamella::where(halvings.gt(i), sum.matmul(sum), sum);
  }
  return sum;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(const Tensor& self, const Tensor& b,
                                                        std::optional<double> rcond,
                                                        std::optional<std::string_view> driver) {
  const char* op = "linalg_lstsq";
  std::string_view which = driver.value_or("gelsy");
  bool known = which == "gels" || which == "gelsy" || which == "gelsd" || which == "gelss";
  LAMELLA_CHECK(known, op, ": expected 'driver' to be gels, gelsy, gelsd or gelss, got '", which,
                "'");
  LAMELLA_CHECK(self.dim() >= 2 && b.dim() >= 1, op, ": expected 'self' to be matrices, got ",
                self.sizes());
  int64_t m = self.size(-2), n = self.size(-1);
  bool vector =
      b.dim() + 1 == self.dim() && b.sizes().equals(self.sizes().slice(0, b.sizes().size()));
  Tensor sides = vector ? b.unsqueeze(-1) : b;
  LAMELLA_CHECK(sides.dim() >= 2 && sides.size(-2) == m, op, ": expected 'b' to have ", m,
                " rows, got ", b.sizes());
  ScalarType real = self.is_complex() ? to_real_type(self.scalar_type()) : self.scalar_type();
  double eps = real == kDouble ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  // As in LAPACK's drivers: gels assumes full rank; a negative tolerance, or for gelsd one that is
  // not between 0 and 1, stands for the precision of the dtype.
  double tolerance = rcond.value_or(eps * static_cast<double>(m > n ? m : n));
  if (which == "gels") {
    tolerance = 0;
  } else if (tolerance < 0 || (which == "gelsd" && !(tolerance > 0 && tolerance < 1))) {
    tolerance = eps;
  }
  auto [U, S, Vh] = lamella::_linalg_svd(self, false, true);
  Dims batch(self.sizes().slice(0, self.sizes().size() - 2));
  Tensor kept = S.numel() == 0 ? S.gt(0) : S.gt(S.narrow(-1, 0, 1).mul(tolerance));
  Tensor inverse = lamella::where(kept, S.reciprocal(), lamella::zeros_like(S));
  auto adjoint = [](const Tensor& t) {
    Tensor flipped = t.transpose(-2, -1);
    return flipped.is_complex() ? flipped.conj_physical() : flipped;
  };
  Tensor parts = adjoint(U).matmul(sides).mul(inverse.unsqueeze(-1).to(self.scalar_type()));
  Tensor solution = adjoint(Vh).matmul(parts);
  Tensor rank = kept.sum(-1);
  TensorOptions options = TensorOptions(real).device(self.device());
  Tensor residuals = lamella::empty({0}, options);
  bool full = m > n && (which == "gels" || self.is_meta() || rank.eq(n).all().item().toBool());
  if (full && which != "gelsy") {
    residuals = self.matmul(solution).sub(sides).abs().square().sum(IntArrayRef(int64_t{-2}));
  }
  bool has_rank = which != "gels", has_values = which == "gelsd" || which == "gelss";
  return {vector ? solution.squeeze(-1) : solution, residuals,
          has_rank ? rank : lamella::empty({0}, TensorOptions(kLong).device(self.device())),
          has_values ? S : lamella::empty({0}, options)};
}

Tensor linalg_tensorinv(const Tensor& self, int64_t ind) {
  const char* op = "linalg_tensorinv";
  LAMELLA_CHECK(ind > 0, op, ": expected 'ind' of at least 1, got ", ind);
  auto at = static_cast<size_t>(ind < self.dim() ? ind : self.dim());
  Dims rows(self.sizes().slice(0, at)), columns(self.sizes().slice(at));
  LAMELLA_CHECK(product(rows) == product(columns), op, ": expected the first ", ind,
                " sizes of 'self' to have the product of the others, got ", self.sizes());
  Dims shape(columns);
  shape.append_all(rows);
  return lamella::linalg_inv(self.reshape({product(rows), product(columns)})).reshape(shape);
}
Tensor linalg_tensorsolve(const Tensor& self, const Tensor& other, OptionalIntArrayRef dims) {
  const char* op = "linalg_tensorsolve";
  Tensor a = self;
  if (dims.has_value()) {
    Dims to;
    for (size_t i = 0; i < dims->size(); ++i) {
      to.push_back(self.dim() - static_cast<int64_t>(dims->size() - i));
    }
    a = a.movedim(*dims, to);
  }
  auto at = static_cast<size_t>(other.dim() < a.dim() ? other.dim() : a.dim());
  Dims shape(a.sizes().slice(at));
  int64_t n = product(shape);
  LAMELLA_CHECK(a.numel() == (CheckedSize(n, op) * n).value() && other.numel() == n, op,
                ": expected 'self' to be a square ", "system for 'other' of ", other.sizes(),
                ", got ", self.sizes());
  return lamella::linalg_solve(a.reshape({n, n}), other.flatten()).reshape(shape);
}
Tensor linalg_vander(const Tensor& x, std::optional<int64_t> N) {
  LAMELLA_CHECK(x.dim() > 0 || N, "linalg_vander: expected 'N' for an 'x' without dimensions");
  LAMELLA_CHECK(x.dtype() != kBool, "linalg_vander: expected 'x' not to be bool");
  int64_t n = N ? *N : x.size(-1);
  LAMELLA_CHECK(n > 1, "linalg_vander: expected 'N' above 1, got ", n);
  Tensor rows = x.dim() == 0 ? x.unsqueeze(0) : x;
  Dims shape(rows.sizes());
  shape.push_back(n - 1);
  Tensor powers = rows.unsqueeze(-1).expand(shape).cumprod(-1);
  shape.back() = 1;
  return lamella::cat({lamella::ones(shape, powers.options()), powers}, -1);
}

// ---- Older names ----

Tensor lu_solve(const Tensor& self, const Tensor& LU_data, const Tensor& LU_pivots) {
  return lamella::linalg_lu_solve(LU_data, LU_pivots, self);
}
std::tuple<Tensor, Tensor> triangular_solve(const Tensor& self, const Tensor& A, bool upper,
                                            bool transpose, bool unitriangular) {
  Tensor solution = lamella::linalg_solve_triangular(transpose ? A.mT() : A, self,
                                                     upper != transpose, true, unitriangular);
  return {solution, A.clone()};
}

// ---- Distances ----

Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> compute_mode) {
  ScalarType dtype = x1.scalar_type();
  if (dtype == x2.scalar_type() && (dtype == kFloat || dtype == kDouble)) {
    return lamella::_cdist_forward(x1, x2, p, compute_mode);
  }
  check_distances(x1, x2, p, compute_mode);
  Tensor apart = x1.unsqueeze(-2).sub(x2.unsqueeze(-3));
  return lamella::linalg_vector_norm(apart, p, IntArrayRef(int64_t{-1}));
}

Tensor pdist(const Tensor& self, double p) {
  LAMELLA_CHECK(self.dim() == 2, "pdist: expected 'self' to have 2 dimensions, got ", self.sizes());
  LAMELLA_CHECK(self.is_floating_point(), "pdist: expected 'self' to be floating point, got ",
                self.scalar_type());
  LAMELLA_CHECK(p >= 0, "pdist: expected 'p' of at least 0, got ", p);
  int64_t n = self.size(0);
  Tensor pairs = lamella::triu_indices(n, n, 1, self.options().dtype(kLong));
  Tensor apart =
      self.index_select(0, pairs.select(0, 0)).sub(self.index_select(0, pairs.select(0, 1)));
  return lamella::linalg_vector_norm(apart, p, IntArrayRef(int64_t{-1}));
}

}  // namespace lamella::native
