// Products of vectors and of several matrices: cross, vecdot, addr, multi_dot, matrix_power.
#include "lamella/api/generated_kernels.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim) {
  const char* op = "linalg_cross";
  LAMELLA_CHECK(self.dim() == other.dim(), op, ": expected 'other' to have ", self.dim(),
                " dimensions as 'self' does, got ", other.sizes());
  LAMELLA_CHECK(self.dim() > 0, op,
                ": expected 'self' to have at least 1 dimension, got a tensor with 0");
  LAMELLA_CHECK(self.size(dim) == 3 && other.size(dim) == 3, op, ": expected dimension ", dim,
                " of both arguments to be of size 3, got ", self.sizes(), " and ", other.sizes());
  lamella::detail::SameDevice device(op);
  device.see("self", self);
  device.see("other", other);
  Dims shape = broadcast_shapes(self.sizes(), other.sizes(), op, "other");
  Tensor a = self.expand(shape), b = other.expand(shape);
  auto part = [&](int64_t i) {
    int64_t j = (i + 1) % 3, k = (i + 2) % 3;
    return a.select(dim, j).mul(b.select(dim, k)).sub(a.select(dim, k).mul(b.select(dim, j)));
  };
  return lamella::stack({part(0), part(1), part(2)}, dim < 0 ? dim + self.dim() : dim);
}
Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  if (dim) return lamella::linalg_cross(self, other, *dim);
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.size(d) == 3) return lamella::linalg_cross(self, other, d);
  }
  LAMELLA_CHECK(false, "cross: expected 'self' to have a dimension of size 3, got ", self.sizes());
}

Tensor linalg_vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  broadcast_shapes(x.sizes(), y.sizes(), "linalg_vecdot", "y");
  Tensor left = x.is_complex() ? x.conj_physical() : x;
  return left.mul(y).sum(IntArrayRef(dim));
}
Tensor linalg_diagonal(const Tensor& A, int64_t offset, int64_t dim1, int64_t dim2) {
  return A.diagonal(offset, dim1, dim2);
}

Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
            const Scalar& alpha) {
  LAMELLA_CHECK(vec1.dim() == 1, "addr: expected 'vec1' to have 1 dimension, got ", vec1.sizes());
  LAMELLA_CHECK(vec2.dim() == 1, "addr: expected 'vec2' to have 1 dimension, got ", vec2.sizes());
  Dims shape;
  shape.push_back(vec1.numel());
  shape.push_back(vec2.numel());
  LAMELLA_CHECK(is_expandable(self.sizes(), shape), "addr: expected 'self' to be broadcastable to ",
                shape.ref(), ", got ", self.sizes());
  bool truths =
      self.scalar_type() == kBool && vec1.scalar_type() == kBool && vec2.scalar_type() == kBool;
  if (truths && beta.isIntegral(true) && alpha.isIntegral(true)) {
    auto is_zero = [](const Scalar& s) { return s.equal(0) || s.equal(false); };
    Tensor product = lamella::outer(vec1, vec2);
    if (is_zero(alpha)) product = lamella::zeros_like(product);
    return is_zero(beta) ? product : product.logical_or(self);
  }
  // beta and alpha do not affect the dtype.
  ResultTypeState state{};
  for (const Tensor* t : {&self, &vec1, &vec2}) state = update_result_type_state(*t, state);
  const ScalarType type = result_type(state);
  auto fits = [&](const Scalar& s) {
    return is_complex(type) || (is_floating_point(type) ? !s.isComplex() : s.isIntegral(true));
  };
  LAMELLA_CHECK(fits(beta), "addr: expected 'beta' to fit a result of ", type, ", got ", beta);
  LAMELLA_CHECK(fits(alpha), "addr: expected 'alpha' to fit a result of ", type, ", got ", alpha);
  // With beta 0, self is ignored, even NaN.
  const bool has_self = !(beta.equal(0) || beta.equal(false));
  const Tensor column = vec1.unsqueeze(1).to(type), row = vec2.to(type);
  if (has_self && type != kBool) {
    return lamella::addcmul(beta.equal(1) ? self.to(type) : self.to(type).mul(beta), column, row,
                            alpha);
  }
  Tensor product = column.mul(row).mul(alpha);
  return has_self ? self.to(type).mul(beta).add(product) : product;
}

// ---- Several matrices ----

namespace {
// Where to split each chain of matrices so that the products together take the fewest
// multiplications.
class Order {
 public:
  // Matrix i has sizes[i] rows and sizes[i + 1] columns.
  explicit Order(const std::vector<int64_t>& sizes) : count_(sizes.size() - 1) {
    std::vector<double> cost(count_ * count_, 0);
    split_.resize(count_ * count_, 0);
    for (size_t length = 2; length <= count_; ++length) {
      for (size_t i = 0; i + length <= count_; ++i) {
        size_t j = i + length - 1;
        double least = -1;
        for (size_t k = i; k < j; ++k) {
          double here = cost[i * count_ + k] + cost[(k + 1) * count_ + j] +
                        static_cast<double>(sizes[i]) * static_cast<double>(sizes[k + 1]) *
                            static_cast<double>(sizes[j + 1]);
          if (least >= 0 && here >= least) continue;
          least = here;
          split_[i * count_ + j] = k;
        }
        cost[i * count_ + j] = least;
      }
    }
  }
  Tensor product(const std::vector<Tensor>& matrices, size_t i, size_t j) const {
    if (i == j) return matrices[i];
    size_t k = split_[i * count_ + j];
    return product(matrices, i, k).mm(product(matrices, k + 1, j));
  }

 private:
  size_t count_;
  std::vector<size_t> split_;
};
}  // namespace

Tensor linalg_multi_dot(TensorList tensors) {
  const char* op = "linalg_multi_dot";
  LAMELLA_CHECK(tensors.size() >= 2, op, ": expected at least 2 'tensors', got ", tensors.size());
  std::vector<Tensor> matrices(tensors.begin(), tensors.end());
  bool row = matrices.front().dim() == 1, column = matrices.back().dim() == 1;
  if (row) matrices.front() = matrices.front().unsqueeze(0);
  if (column) matrices.back() = matrices.back().unsqueeze(-1);
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < matrices.size(); ++i) {
    LAMELLA_CHECK(matrices[i].dim() == 2, op, ": expected 'tensors' to be matrices, or vectors at ",
                  "the ends, got ", tensors[i].sizes(), " at position ", i);
    LAMELLA_CHECK(i == 0 || matrices[i].size(0) == matrices[i - 1].size(1), op,
                  ": expected 'tensors' to be multipliable, got ", tensors[i].sizes(),
                  " at position ", i, " behind ", i == 0 ? IntArrayRef() : tensors[i - 1].sizes());
    sizes.push_back(matrices[i].size(0));
  }
  sizes.push_back(matrices.back().size(1));
  Tensor result = Order(sizes).product(matrices, 0, matrices.size() - 1);
  if (row) result = result.squeeze(0);
  if (column) result = result.squeeze(-1);
  return result;
}
Tensor chain_matmul(TensorList matrices) {
  LAMELLA_CHECK(!matrices.empty(), "chain_matmul: expected 'matrices' not to be empty");
  for (const Tensor& matrix : matrices) {
    LAMELLA_CHECK(matrix.dim() == 2, "chain_matmul: expected 'matrices' to have 2 dimensions, got ",
                  matrix.sizes());
  }
  return matrices.size() == 1 ? matrices[0] : lamella::linalg_multi_dot(matrices);
}

Tensor linalg_matrix_power(const Tensor& self, int64_t n) {
  LAMELLA_CHECK(self.dim() >= 2 && self.size(-1) == self.size(-2),
                "linalg_matrix_power: expected 'self' to be a stack of square matrices, got ",
                self.sizes());
  if (n == 0) return self.clone().copy_(lamella::eye(self.size(-1), self.options()));
  if (n == 1) return self.clone();
  Tensor square = n < 0 ? lamella::linalg_inv(self) : self;
  // Squares the matrix for each bit of the exponent, from the lowest.
  Tensor result;
  for (uint64_t left = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n); left != 0;
       left >>= 1) {
    if ((left & 1) != 0) result = result.defined() ? result.matmul(square) : square;
    if (left > 1) square = square.matmul(square);
  }
  return result;
}

}  // namespace lamella::native
