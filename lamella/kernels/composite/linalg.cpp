// Linear algebra made of factorisations and products: norms, inverses, least squares, functions of
// matrices, distances.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lamella/core/checked_size.h"
#include "lamella/core/key_set.h"
#include "lamella/kernels/distances.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

namespace {
void check_square_matrices(const char* op, const Tensor& a, const char* name) {
  LAMELLA_CHECK(a.dim() >= 2 && a.size(-1) == a.size(-2), op, ": expected '", name,
                "' to be a stack of square matrices, got ", a.sizes());
}
Tensor identity_like(const Tensor& a) {
  return lamella::eye(a.size(-1), a.options()).expand(a.sizes());
}
Tensor adjoint_of(const Tensor& a) {
  Tensor flipped = a.transpose(-2, -1);
  return a.is_complex() ? flipped.conj_physical() : flipped;
}
}  // namespace

// ---- Cholesky ----

Tensor linalg_cholesky(const Tensor& self, bool upper) {
  return std::get<0>(lamella::linalg_cholesky_ex(self, upper, true));
}
Tensor cholesky(const Tensor& self, bool upper) { return lamella::linalg_cholesky(self, upper); }
Tensor cholesky_solve(const Tensor& self, const Tensor& input2, bool upper) {
  LAMELLA_CHECK(self.dim() >= 2, "cholesky_solve: expected 'self' to have at least 2 dimensions, ",
                "got ", self.sizes());
  Tensor factor = upper ? input2.triu() : input2.tril();
  Tensor first = upper ? adjoint_of(factor) : factor;
  Tensor second = upper ? factor : adjoint_of(factor);
  Tensor half = lamella::linalg_solve_triangular(first, self, false);
  return lamella::linalg_solve_triangular(second, half, true);
}
Tensor cholesky_inverse(const Tensor& self, bool upper) {
  check_square_matrices("cholesky_inverse", self, "self");
  return lamella::cholesky_solve(identity_like(self), self, upper);
}

// ---- Systems, inverses, determinants ----

std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& A, bool pivot) {
  auto [LU, pivots, info] = lamella::linalg_lu_factor_ex(A, pivot, true);
  return {LU, pivots};
}
std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& A, const Tensor& B, bool left,
                                           bool check_errors) {
  auto [result, LU, pivots, info] = lamella::_linalg_solve_ex(A, B, left, check_errors);
  return {result, info};
}
Tensor linalg_solve(const Tensor& A, const Tensor& B, bool left) {
  return std::get<0>(lamella::_linalg_solve_ex(A, B, left, true));
}
Tensor linalg_inv(const Tensor& A) { return std::get<0>(lamella::linalg_inv_ex(A, true)); }
Tensor linalg_det(const Tensor& A) { return std::get<0>(lamella::_linalg_det(A)); }
std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& A) {
  auto [sign, logabsdet, LU, pivots] = lamella::_linalg_slogdet(A);
  return {sign, logabsdet};
}
std::tuple<Tensor, Tensor> slogdet(const Tensor& self) { return lamella::linalg_slogdet(self); }
Tensor logdet(const Tensor& self) {
  auto [sign, logabsdet] = lamella::linalg_slogdet(self);
  if (self.is_complex()) return sign.log().add(logabsdet);
  return lamella::where(sign.eq(-1), lamella::full({}, std::nan(""), logabsdet.options()),
                        logabsdet);
}

// ---- Spectra ----

namespace {
// Gradients of singular values and eigenvalues need the vectors. For wrapper tensors, only the
// flags tell whether the wrapped tensors have gradients.
bool wants_vectors(const Tensor& a) {
  constexpr uint32_t kShown = LAMELLA_TENSOR_REQUIRES_GRAD | LAMELLA_TENSOR_TANGENT;
  return (a.impl()->key_set & kGradientBits) != 0 || (a.impl()->flags & kShown) != 0;
}
}  // namespace

std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& A, bool full_matrices,
                                              std::optional<std::string_view> driver) {
  return lamella::_linalg_svd(A, full_matrices, true, driver);
}
Tensor linalg_svdvals(const Tensor& A, std::optional<std::string_view> driver) {
  return std::get<1>(lamella::_linalg_svd(A, false, wants_vectors(A), driver));
}
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, bool some, bool compute_uv) {
  auto [U, S, Vh] = lamella::_linalg_svd(self, !some, true);
  if (compute_uv) return {U, S, adjoint_of(Vh)};
  int64_t m = self.size(-2), n = self.size(-1);
  Dims left(self.sizes()), right(self.sizes());
  left[left.size() - 1] = m;
  right[right.size() - 2] = n;
  return {self.new_zeros(left), S, self.new_zeros(right)};
}
std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& self, std::string_view UPLO) {
  return lamella::_linalg_eigh(self, UPLO, true);
}
Tensor linalg_eigvalsh(const Tensor& self, std::string_view UPLO) {
  return std::get<0>(lamella::_linalg_eigh(self, UPLO, wants_vectors(self)));
}
Tensor linalg_eigvals(const Tensor& self) { return std::get<0>(lamella::linalg_eig(self)); }
std::tuple<Tensor, Tensor> qr(const Tensor& self, bool some) {
  return lamella::linalg_qr(self, some ? "reduced" : "complete");
}

// ---- Pseudo-inverse and rank ----

namespace {
// Singular values up to this count as zero.
Tensor cutoff(const Tensor& largest, const Tensor& A, const std::optional<Tensor>& atol,
              const std::optional<Tensor>& rtol) {
  ScalarType real = to_real_type(A.scalar_type());
  TensorOptions options = TensorOptions(real).device(A.device());
  bool has_atol = atol.has_value() && atol->defined();
  Tensor absolute = has_atol ? atol->to(real) : lamella::zeros({}, options);
  if (rtol.has_value() && rtol->defined()) {
    return lamella::maximum(absolute.unsqueeze(-1), rtol->to(real).unsqueeze(-1).mul(largest));
  }
  double eps = real == kDouble ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  auto size = static_cast<double>(A.size(-1) > A.size(-2) ? A.size(-1) : A.size(-2));
  Tensor relative = lamella::full({}, eps * size, options);
  // An absolute tolerance above 0 replaces the default relative one.
  if (has_atol) relative = lamella::where(absolute.gt(0), relative.mul(0), relative);
  return lamella::maximum(absolute.unsqueeze(-1), relative.unsqueeze(-1).mul(largest));
}
std::optional<Tensor> as_tensor(std::optional<double> number, const Tensor& like) {
  if (!number) return std::nullopt;
  return lamella::full({}, *number, TensorOptions(kDouble).device(like.device()));
}
}  // namespace

Tensor linalg_pinv(const Tensor& self, const std::optional<Tensor>& atol,
                   const std::optional<Tensor>& rtol, bool hermitian) {
  LAMELLA_CHECK(self.dim() >= 2, "linalg_pinv: expected 'self' to have at least 2 dimensions, got ",
                self.sizes());
  if (self.numel() == 0) {
    Dims shape(self.sizes());
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    return self.new_empty(shape);
  }
  if (hermitian) {
    auto [values, vectors] = lamella::_linalg_eigh(self, "L", true);
    Tensor size = values.abs();
    Tensor kept = size.gt(cutoff(size.amax(-1, true), self, atol, rtol));
    Tensor inverse = lamella::where(kept, values.reciprocal(), lamella::zeros_like(values));
    return vectors.mul(inverse.unsqueeze(-2).to(self.scalar_type())).matmul(adjoint_of(vectors));
  }
  auto [U, S, Vh] = lamella::_linalg_svd(self, false, true);
  Tensor kept = S.gt(cutoff(S.narrow(-1, 0, 1), self, atol, rtol));
  Tensor inverse = lamella::where(kept, S.reciprocal(), lamella::zeros_like(S));
  return adjoint_of(Vh).mul(inverse.unsqueeze(-2).to(self.scalar_type())).matmul(adjoint_of(U));
}
Tensor linalg_pinv(const Tensor& self, std::optional<double> atol, std::optional<double> rtol,
                   bool hermitian) {
  return lamella::linalg_pinv(self, as_tensor(atol, self), as_tensor(rtol, self), hermitian);
}
Tensor linalg_pinv(const Tensor& self, const Tensor& rcond, bool hermitian) {
  return lamella::linalg_pinv(self, as_tensor(0.0, self), rcond, hermitian);
}
Tensor linalg_pinv(const Tensor& self, double rcond, bool hermitian) {
  return lamella::linalg_pinv(self, as_tensor(0.0, self), as_tensor(rcond, self), hermitian);
}

Tensor linalg_matrix_rank(const Tensor& input, const std::optional<Tensor>& atol,
                          const std::optional<Tensor>& rtol, bool hermitian) {
  LAMELLA_CHECK(input.dim() >= 2,
                "linalg_matrix_rank: expected 'input' to have at least 2 dimensions, got ",
                input.sizes());
  Dims batch(input.sizes().slice(0, input.sizes().size() - 2));
  if (input.numel() == 0) return lamella::zeros(batch, input.options().dtype(kLong));
  Tensor size = hermitian ? lamella::linalg_eigvalsh(input).abs() : lamella::linalg_svdvals(input);
  return size.gt(cutoff(size.amax(-1, true), input, atol, rtol)).sum(-1);
}
Tensor linalg_matrix_rank(const Tensor& self, std::optional<double> atol,
                          std::optional<double> rtol, bool hermitian) {
  return lamella::linalg_matrix_rank(self, as_tensor(atol, self), as_tensor(rtol, self), hermitian);
}
Tensor linalg_matrix_rank(const Tensor& input, const Tensor& tol, bool hermitian) {
  return lamella::linalg_matrix_rank(input, tol, as_tensor(0.0, input), hermitian);
}
Tensor linalg_matrix_rank(const Tensor& self, double tol, bool hermitian) {
  return lamella::linalg_matrix_rank(self, as_tensor(tol, self), as_tensor(0.0, self), hermitian);
}

// ---- Norms ----

namespace {
struct MatrixDims {
  int64_t rows, columns;
};
MatrixDims matrix_dims(const char* op, const Tensor& self, IntArrayRef dim) {
  LAMELLA_CHECK(self.dim() >= 2, op, ": expected 'self' to have at least 2 dimensions, got ",
                self.sizes());
  LAMELLA_CHECK(dim.size() == 2, op, ": expected two dimensions in 'dim', got ", dim);
  MatrixDims dims{maybe_wrap_dim(dim[0], self.dim(), op), maybe_wrap_dim(dim[1], self.dim(), op)};
  LAMELLA_CHECK(dims.rows != dims.columns, op, ": expected the two entries of 'dim' to differ, ",
                "got ", dim);
  return dims;
}
// Singular values in the last dimension, of matrices that may lie in any two.
Tensor singular_values(const Tensor& self, const MatrixDims& dims) {
  return lamella::linalg_svdvals(self.movedim({dims.rows, dims.columns}, {-2, -1}));
}
Tensor with_kept_dims(const Tensor& norm, const MatrixDims& dims, bool keepdim) {
  if (!keepdim) return norm;
  int64_t first = dims.rows < dims.columns ? dims.rows : dims.columns;
  int64_t second = dims.rows < dims.columns ? dims.columns : dims.rows;
  return norm.unsqueeze(first).unsqueeze(second);
}
Tensor in_dtype(const Tensor& self, std::optional<ScalarType> dtype) {
  return dtype ? self.to(*dtype) : self;
}
}  // namespace

Tensor linalg_matrix_norm(const Tensor& self, const Scalar& ord, IntArrayRef dim, bool keepdim,
                          std::optional<ScalarType> dtype) {
  const char* op = "linalg_matrix_norm";
  MatrixDims dims = matrix_dims(op, self, dim);
  double order = ord.toDouble();
  double size = std::fabs(order);
  LAMELLA_CHECK(size == 1 || size == 2 || std::isinf(size), op,
                ": expected 'ord' to be 1, 2 or inf, or one of their negatives, got ", ord);
  Tensor a = in_dtype(self, dtype);
  bool most = order > 0;
  if (size == 2) {
    Tensor values = singular_values(a, dims);
    return with_kept_dims(most ? values.amax(-1) : values.amin(-1), dims, keepdim);
  }
  // The norm is an extreme, over one dimension, of the sums along the other.
  int64_t along = size == 1 ? dims.rows : dims.columns;
  int64_t over = size == 1 ? dims.columns : dims.rows;
  Tensor sums = lamella::linalg_vector_norm(a, 1, IntArrayRef(along), keepdim);
  if (!keepdim && along < over) --over;
  return most ? sums.amax(IntArrayRef(over), keepdim) : sums.amin(IntArrayRef(over), keepdim);
}
Tensor linalg_matrix_norm(const Tensor& self, std::string_view ord, IntArrayRef dim, bool keepdim,
                          std::optional<ScalarType> dtype) {
  const char* op = "linalg_matrix_norm";
  LAMELLA_CHECK(ord == "fro" || ord == "nuc", op, ": expected 'ord' to be fro or nuc, got '", ord,
                "'");
  MatrixDims dims = matrix_dims(op, self, dim);
  if (ord == "fro") {
    return lamella::linalg_vector_norm(self, 2, {dims.rows, dims.columns}, keepdim, dtype);
  }
  return with_kept_dims(singular_values(in_dtype(self, dtype), dims).sum(-1), dims, keepdim);
}

Tensor linalg_norm(const Tensor& self, const std::optional<Scalar>& ord, OptionalIntArrayRef dim,
                   bool keepdim, std::optional<ScalarType> dtype) {
  if (!ord) return lamella::linalg_vector_norm(self, 2, dim, keepdim, dtype);
  LAMELLA_CHECK(dim.has_value() || self.dim() == 1 || self.dim() == 2,
                "linalg_norm: expected 'self' to have 1 or 2 dimensions where 'ord' is given "
                "without 'dim', got ",
                self.sizes());
  if (dim.has_value() ? dim->size() == 2 : self.dim() == 2) {
    int64_t both[2] = {-2, -1};
    return lamella::linalg_matrix_norm(self, *ord, dim.has_value() ? *dim : IntArrayRef(both),
                                       keepdim, dtype);
  }
  return lamella::linalg_vector_norm(self, *ord, dim, keepdim, dtype);
}
Tensor linalg_norm(const Tensor& self, std::string_view ord, OptionalIntArrayRef dim, bool keepdim,
                   std::optional<ScalarType> dtype) {
  int64_t both[2] = {-2, -1};
  return lamella::linalg_matrix_norm(self, ord, dim.has_value() ? *dim : IntArrayRef(both), keepdim,
                                     dtype);
}

namespace {
// The condition numbers of matrices without elements.
Tensor cond_of_nothing(const Tensor& self) {
  IntArrayRef sizes = self.sizes();
  return lamella::zeros(sizes.slice(0, sizes.size() - 2),
                        self.options().dtype(to_real_type(self.scalar_type())));
}
// The condition number from the norms of a matrix and its inverse; infinite for singular matrices.
template <class P>
Tensor cond_by_inverse(const Tensor& self, const P& p) {
  auto [inverse, info] = lamella::linalg_inv_ex(self);
  return lamella::linalg_matrix_norm(self, p)
      .mul(lamella::linalg_matrix_norm(inverse, p))
      .masked_fill(info != 0, std::numeric_limits<double>::infinity());
}
}  // namespace

Tensor linalg_cond(const Tensor& self, const std::optional<Scalar>& p) {
  LAMELLA_CHECK(self.dim() >= 2, "linalg_cond: expected 'self' to have at least 2 dimensions, got ",
                self.sizes());
  if (self.numel() == 0) return cond_of_nothing(self);
  double order = p ? p->toDouble() : 2;
  if (std::fabs(order) == 2) {
    Tensor values = lamella::linalg_svdvals(self);
    Tensor most = values.select(-1, 0), least = values.select(-1, -1);
    return order > 0 ? most.div(least) : least.div(most);
  }
  return cond_by_inverse(self, *p);
}
Tensor linalg_cond(const Tensor& self, std::string_view p) {
  LAMELLA_CHECK(p == "fro" || p == "nuc", "linalg_cond: expected 'p' to be fro or nuc, got '", p,
                "'");
  LAMELLA_CHECK(self.dim() >= 2, "linalg_cond: expected 'self' to have at least 2 dimensions, got ",
                self.sizes());
  if (self.numel() == 0) return cond_of_nothing(self);
  if (p == "nuc") {
    Tensor values = lamella::linalg_svdvals(self);
    return values.sum(-1).mul(values.reciprocal().sum(-1));
  }
  return cond_by_inverse(self, p);
}

// The default of rcond is below float32's resolution, as in PyTorch.
Tensor pinverse(const Tensor& self, double rcond) {
  bool is_single = to_real_type(self.scalar_type()) == kFloat;
  double least = is_single ? std::numeric_limits<float>::epsilon() : 0.0;
  return lamella::linalg_pinv(self, std::max(rcond, least));
}

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
  Tensor halvings = lamella::where(scaled, norm.log2().sub(std::log2(largest)).ceil(), Scalar(0));
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
  const ScalarType dtype = self.scalar_type(), whole = n < (1 << 15) ? kInt : kLong;
  Tensor pairs = lamella::triu_indices(n, n, 1, self.options().dtype(whole));
  // Between all of them are the distances of each row to itself, whose second derivatives are NaN.
  if ((dtype == kFloat || dtype == kDouble) && !self.requires_grad()) {
    const Tensor places = pairs.select(0, 1).add(pairs.select(0, 0), n);
    return lamella::_cdist_forward(self, self, p, 2).flatten().index_select(0, places);
  }
  Tensor apart =
      self.index_select(0, pairs.select(0, 0)).sub(self.index_select(0, pairs.select(0, 1)));
  return lamella::linalg_vector_norm(apart, p, IntArrayRef(int64_t{-1}));
}

}  // namespace lamella::native
