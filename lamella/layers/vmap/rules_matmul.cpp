// Rules for products of matrices and vectors.
#include "lamella/layers/vmap/rules_common.h"

namespace lamella::vmap {
namespace {

void check_rank(const char* op, const char* name, const In& x, int64_t rank) {
  LAMELLA_CHECK(x.rank() == rank, op, ": expected '", name, "' to have ", rank,
                rank == 1 ? " dimension, got " : " dimensions, got ", x.sizes());
}
void check_inner(const char* op, const char* name, int64_t expected, const In& x, int64_t dim) {
  LAMELLA_CHECK(x.size(dim) == expected, op, ": expected dimension ", dim, " of '", name,
                "' to be of size ", expected, ", got shape ", x.sizes());
}
void check_same_dtype(const char* op, const char* name, const In& a, const In& b) {
  LAMELLA_CHECK(a.value.scalar_type() == b.value.scalar_type(), op, ": expected '", name,
                "' to be of ", a.value.scalar_type(), ", got ", b.value.scalar_type());
}

// ---- Products of two --------------------------------------------------------------------------

Tensor mm(BatchedCall& call, In self, In mat2) {
  check_rank("mm", "self", self, 2);
  check_rank("mm", "mat2", mat2, 2);
  check_inner("mm", "mat2", self.size(1), mat2, 0);
  check_same_dtype("mm", "mat2", self, mat2);
  if (self.batched && mat2.batched) return self.value.bmm(mat2.value);
  if (self.batched) {
    // One product of all rows.
    return self.value.reshape({call.batch_size() * self.size(0), self.size(1)})
        .mm(mat2.value)
        .view({call.batch_size(), self.size(0), mat2.size(1)});
  }
  return lamella::matmul(self.value, mat2.value);
}
// If only one operand is batched, its matrices are concatenated into one product.
Tensor int_mm(BatchedCall& call, In self, In mat2) {
  check_rank("_int_mm", "self", self, 2);
  check_rank("_int_mm", "mat2", mat2, 2);
  check_inner("_int_mm", "mat2", self.size(1), mat2, 0);
  int64_t batch = call.batch_size(), rows = self.size(0), columns = mat2.size(1);
  if (!mat2.batched) {
    Tensor all = self.value.reshape({batch * rows, self.size(1)});
    return lamella::_int_mm(all, mat2.value).view({batch, rows, columns});
  }
  if (!self.batched) {
    Tensor all = mat2.value.transpose(0, 1).reshape({mat2.size(0), batch * columns});
    return lamella::_int_mm(self.value, all).view({rows, batch, columns}).transpose(0, 1);
  }
  std::vector<Tensor> products;
  for (int64_t i = 0; i < batch; ++i) {
    products.push_back(lamella::_int_mm(self.value.select(0, i), mat2.value.select(0, i)));
  }
  return lamella::stack(products);
}
Tensor bmm(BatchedCall&, In self, In mat2) {
  check_rank("bmm", "self", self, 3);
  check_rank("bmm", "mat2", mat2, 3);
  check_inner("bmm", "mat2", self.size(0), mat2, 0);
  check_inner("bmm", "mat2", self.size(2), mat2, 1);
  check_same_dtype("bmm", "mat2", self, mat2);
  return lamella::matmul(self.value, mat2.value);
}
Tensor mv(BatchedCall&, In self, In vec) {
  check_rank("mv", "self", self, 2);
  check_rank("mv", "vec", vec, 1);
  check_inner("mv", "vec", self.size(1), vec, 0);
  check_same_dtype("mv", "vec", self, vec);
  if (!vec.batched) return lamella::matmul(self.value, vec.value);
  return lamella::matmul(self.value, vec.value.unsqueeze(-1)).squeeze(-1);
}
Tensor product_of_vectors(const char* op, const In& a, const In& b, const Tensor& left) {
  check_rank(op, "self", a, 1);
  check_rank(op, op[0] == 'v' ? "other" : "tensor", b, 1);
  check_inner(op, op[0] == 'v' ? "other" : "tensor", a.size(0), b, 0);
  check_same_dtype(op, op[0] == 'v' ? "other" : "tensor", a, b);
  if (!b.batched) return lamella::matmul(left, b.value);
  if (!a.batched) return lamella::matmul(b.value, left);
  return lamella::bmm(left.unsqueeze(1), b.value.unsqueeze(2)).squeeze(2).squeeze(1);
}
Tensor dot(BatchedCall&, In self, In tensor) {
  return product_of_vectors("dot", self, tensor, self.value);
}
Tensor vdot(BatchedCall&, In self, In other) {
  Tensor left = self.value.is_complex() ? self.value.conj_physical() : self.value;
  return product_of_vectors("vdot", self, other, left);
}

// ---- beta * self + alpha * product ------------------------------------------------------------

bool is_zero(const Scalar& number) { return number.equal(0) || number.equal(false); }

// Truncates a floating-point factor of an integral product, as the operators do.
Scalar in_type(const Scalar& number, const Tensor& product) {
  return is_integral(product.scalar_type(), false) && number.isFloatingPoint()
             ? Scalar(static_cast<int64_t>(number.toDouble()))
             : number;
}

// With beta 0 self is ignored, even if it holds NaN. self broadcasts to the product.
Tensor added(const char* op, const Tensor& self, const Tensor& product, const Scalar& beta,
             const Scalar& alpha) {
  LAMELLA_CHECK(self.dim() <= product.dim(), op, ": expected 'self' to be broadcastable to ",
                product.sizes(), ", got ", self.sizes());
  Tensor scaled = alpha.equal(1) ? product : product.mul(in_type(alpha, product));
  if (is_zero(beta)) return scaled;
  return scaled.add(beta.equal(1) ? self : self.mul(in_type(beta, product)));
}
Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
             const Scalar& alpha) {
  return added("addmm", self, lamella::mm(mat1, mat2), beta, alpha);
}
Tensor addmm_activation(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                        const Scalar& beta, const Scalar& alpha, bool use_gelu) {
  Tensor sum = added("_addmm_activation", self, lamella::mm(mat1, mat2), beta, alpha);
  return use_gelu ? lamella::gelu(sum) : lamella::relu(sum);
}
Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
             const Scalar& alpha) {
  return added("addmv", self, lamella::mv(mat, vec), beta, alpha);
}
Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
               const Scalar& alpha) {
  return added("baddbmm", self, lamella::bmm(batch1, batch2), beta, alpha);
}
Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
              const Scalar& alpha) {
  return added("addbmm", self, lamella::bmm(batch1, batch2).sum(IntArrayRef(int64_t{0})), beta,
               alpha);
}

// ---- linear ----------------------------------------------------------------------------------

// input @ weight.T of all examples, with the batch in front.
Tensor linear_product(const BatchedCall& call, const In& input, const In& weight) {
  if (!weight.batched)
    return front(call, {lamella::linear(input.value, weight.value), input.batched});
  Tensor x = front(call, input);
  if (weight.rank() != 2) {
    check_rank("linear", "weight", weight, 1);  // one row
    return x.mul(aligned(weight, input.rank())).sum(IntArrayRef(int64_t{-1}));
  }
  Sizes shape(x.sizes().begin(), x.sizes().end());
  int64_t rows = 1;
  for (int64_t size : input.sizes().slice(0, input.sizes().size() - 1)) rows *= size;
  shape.back() = weight.size(0);
  return x.reshape({call.batch_size(), rows, input.size(-1)})
      .bmm(weight.value.transpose(1, 2))
      .view(shape);
}

Tensor linear(BatchedCall& call, In input, In weight, In bias) {
  LAMELLA_CHECK(input.rank() >= 1,
                "linear: expected 'input' to have at least 1 dimension, got a tensor with 0");
  const int64_t product_rank = input.rank() - (weight.rank() == 1 ? 1 : 0);
  const bool bias_is_wider = bias.defined() && bias.rank() > product_rank;
  if (!weight.batched && !bias.batched && !bias_is_wider) {
    return lamella::linear(input.value, weight.value, or_none(bias.value));
  }
  Tensor product = linear_product(call, input, weight);
  if (!bias.defined()) return product;
  const int64_t rank = std::max(product_rank, bias.rank());
  return aligned({product, true}, rank).add(aligned(bias, rank));
}

std::tuple<Tensor, Tensor, Tensor> linear_backward(const Tensor& self, const Tensor& grad_output,
                                                   const Tensor& weight,
                                                   std::array<bool, 3> output_mask) {
  int64_t out = grad_output.size(-1), in = self.size(-1);
  Tensor rows = grad_output.reshape({grad_output.numel() / std::max<int64_t>(out, 1), out});
  Tensor grad_self, grad_weight, grad_bias;
  if (output_mask[0]) grad_self = rows.mm(weight).reshape(self.sizes());
  if (output_mask[1]) grad_weight = rows.t().mm(self.reshape({rows.size(0), in}));
  if (output_mask[2]) grad_bias = rows.sum(IntArrayRef(int64_t{0}));
  return {grad_self, grad_weight, grad_bias};
}

// ---- Distances between rows -------------------------------------------------------------------

int64_t rank_of_stacks(In x1, In x2) {
  LAMELLA_CHECK(x1.rank() >= 2 && x2.rank() >= 2,
                "cdist: expected 'x1' and 'x2' to have at least 2 dimensions, got ", x1.sizes(),
                " and ", x2.sizes());
  return x1.rank() > x2.rank() ? x1.rank() : x2.rank();
}
Tensor cdist_forward(BatchedCall& call, In x1, In x2, double p,
                     std::optional<int64_t> compute_mode) {
  int64_t rank = rank_of_stacks(x1, x2);
  return lamella::_cdist_forward(front(call, x1, rank), front(call, x2, rank), p, compute_mode);
}
Tensor cdist_backward(BatchedCall& call, In grad, In x1, In x2, double p, In cdist) {
  int64_t rank = rank_of_stacks(x1, x2);
  Tensor made = lamella::_cdist_backward(front(call, grad, rank), front(call, x1, rank),
                                         front(call, x2, rank), p, front(call, cdist, rank));
  return made.view(with_batch(call, x1.sizes()));
}

constexpr NamedRule kRules[] = {
    {"int_mm", &typed<&int_mm>},
    {"cdist_forward", &typed<&cdist_forward>},
    {"cdist_backward", &typed<&cdist_backward>},
    {"mm", &typed<&mm>},
    {"bmm", &typed<&bmm>},
    {"mv", &typed<&mv>},
    {"dot", &typed<&dot>},
    {"vdot", &typed<&vdot>},
    {"addmm", &decomposed<&addmm>},
    {"_addmm_activation", &decomposed<&addmm_activation>},
    {"addmv", &decomposed<&addmv>},
    {"baddbmm", &decomposed<&baddbmm>},
    {"addbmm", &decomposed<&addbmm>},
    {"linear", &typed<&linear>},
    {"linear_backward", &decomposed<&linear_backward>},
};

}  // namespace

NamedRules matmul_rules() { return kRules; }

}  // namespace lamella::vmap
