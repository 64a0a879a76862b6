// Products of tensors of any rank, made of mm, bmm, mv and dot: matmul, outer, inner,
// tensordot, kron.
#include "lamella/api/generated_kernels.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

namespace {

// Expands both operands to one batch shape, and multiplies them as flat stacks of matrices by bmm.
Tensor batched_matmul(const Tensor& a, const Tensor& b) {
  auto lead = [](const Tensor& t) { return t.sizes().slice(0, t.sizes().size() - 2); };
  size_t an = a.sizes().size(), bn = b.sizes().size();
  int64_t m = a.sizes()[an - 2], k = a.sizes()[an - 1], n = b.sizes()[bn - 1];
  Dims batch = broadcast_shapes(lead(a), lead(b), "matmul", "other");
  int64_t count = product(batch);
  auto stacked = [&](const Tensor& t, int64_t rows, int64_t columns) {
    Dims shape(batch);
    shape.push_back(rows);
    shape.push_back(columns);
    Tensor wide = t.sizes().equals(shape) ? t : t.expand(shape);
    return wide.dim() == 3 ? wide : wide.reshape({count, rows, columns});
  };
  Tensor product = lamella::bmm(stacked(a, m, k), stacked(b, k, n));
  if (batch.size() == 1) return product;
  Dims shape(batch);
  shape.push_back(m);
  shape.push_back(n);
  return lamella::_unsafe_view(product, shape);
}

// The product of a stack of matrices with one matrix or vector, computed as one product of the
// matrices stacked along their rows.
Tensor folded_matmul(const Tensor& a, const Tensor& b) {
  Dims shape(a.sizes());
  int64_t k = shape.back();
  shape.pop_back();
  Tensor tall = a.reshape({product(shape), k});
  if (b.dim() == 1) return lamella::_unsafe_view(tall.mv(b), shape);
  shape.push_back(b.sizes()[1]);
  return lamella::_unsafe_view(tall.mm(b), shape);
}

}  // namespace

Tensor matmul(const Tensor& self, const Tensor& other) {
  int64_t a = self.dim(), b = other.dim();
  LAMELLA_CHECK(a > 0 && b > 0, "matmul: expected both arguments to have at least 1 ",
                "dimension, got ", self.sizes(), " and ", other.sizes());
  int64_t k = self.size(-1);
  LAMELLA_CHECK(other.size(b == 1 ? 0 : -2) == k, "matmul: expected 'other' to be of shape [",
                b > 2 ? "..., " : "", k, b > 1 ? ", *" : "", "], got ", other.sizes());
  if (a == 1 && b == 1) return self.dot(other);
  if (a == 2 && b == 1) return self.mv(other);
  if (a == 1 && b == 2) return self.unsqueeze(0).mm(other).squeeze(0);
  if (a == 2 && b == 2) return self.mm(other);
  if (b <= 2) return folded_matmul(self, other);
  if (a == 1) return batched_matmul(self.unsqueeze(0), other).squeeze(-2);
  return batched_matmul(self, other);
}
Tensor& matmul_out(const Tensor& self, const Tensor& other, Tensor& out) {
  if (self.dim() == 2 && other.dim() == 2) return lamella::mm_out(out, self, other);
  Tensor result = lamella::matmul(self, other);
  ::lamella::detail::assign_out("matmul", "out", out, result);
  return out;
}

namespace {
void check_vector(const char* op, const Tensor& tensor, const char* name) {
  LAMELLA_CHECK(tensor.dim() == 1, op, ": expected '", name, "' to have 1 dimension, got ",
                tensor.sizes());
}
}  // namespace

Tensor outer(const Tensor& self, const Tensor& vec2) {
  check_vector("outer", self, "self");
  check_vector("outer", vec2, "vec2");
  return self.unsqueeze(1).mul(vec2);
}
Tensor& outer_out(const Tensor& self, const Tensor& vec2, Tensor& out) {
  check_vector("outer", self, "self");
  check_vector("outer", vec2, "vec2");
  return lamella::mul_out(out, self.unsqueeze(1), vec2);
}
Tensor ger(const Tensor& self, const Tensor& vec2) { return lamella::outer(self, vec2); }
Tensor& ger_out(const Tensor& self, const Tensor& vec2, Tensor& out) {
  return lamella::outer_out(out, self, vec2);
}

Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return self.mul(other);
  LAMELLA_CHECK(self.size(-1) == other.size(-1), "inner: expected 'other' to be of shape [..., ",
                self.size(-1), "], got ", other.sizes());
  return lamella::tensordot(self, other, IntArrayRef(int64_t{-1}), IntArrayRef(int64_t{-1}));
}
Tensor& inner_out(const Tensor& self, const Tensor& other, Tensor& out) {
  Tensor result = lamella::inner(self, other);
  ::lamella::detail::assign_out("inner", "out", out, result);
  return out;
}

Tensor tensordot(const Tensor& self, const Tensor& other, IntArrayRef dims_self,
                 IntArrayRef dims_other) {
  LAMELLA_CHECK(dims_self.size() == dims_other.size(),
                "tensordot: expected as many 'dims_other' as 'dims_self', got ", dims_other,
                " for ", dims_self);
  DimSet in_self("tensordot", "dims_self", dims_self, self.dim());
  DimSet in_other("tensordot", "dims_other", dims_other, other.dim());
  Dims order_self, order_other, shape;
  int64_t rows = 1, inner_size = 1, columns = 1;
  Tensor a = self, b = other;
  for (size_t i = 0; i < dims_self.size(); ++i) {
    int64_t x = maybe_wrap_dim(dims_self[i], self.dim()),
            y = maybe_wrap_dim(dims_other[i], other.dim());
    int64_t m = a.size(x), n = b.size(y);
    LAMELLA_CHECK(m == n || m == 1 || n == 1, "tensordot: expected dimension ", y,
                  " of 'other' to be of size ", m, ", got ", n);
    if (m == 1 && n != 1) b = b.sum(IntArrayRef(y), true, b.scalar_type());  // a has size 1 there
    if (n == 1 && m != 1) a = a.sum(IntArrayRef(x), true, a.scalar_type());
    inner_size *= a.size(x);
  }
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (in_self.has(d)) continue;
    order_self.push_back(d);
    shape.push_back(a.size(d));
    rows *= a.size(d);
  }
  for (size_t i = 0; i < dims_self.size(); ++i) {
    order_self.push_back(maybe_wrap_dim(dims_self[i], self.dim()));
    order_other.push_back(maybe_wrap_dim(dims_other[i], other.dim()));
  }
  for (int64_t d = 0; d < b.dim(); ++d) {
    if (in_other.has(d)) continue;
    order_other.push_back(d);
    shape.push_back(b.size(d));
    columns *= b.size(d);
  }
  if (shape.empty() && inner_size > 1) {
    return a.permute(order_self)
        .reshape({inner_size})
        .dot(b.permute(order_other).reshape({inner_size}));
  }
  Tensor left = a.permute(order_self).reshape({rows, inner_size});
  Tensor right = b.permute(order_other).reshape({inner_size, columns});
  return left.mm(right).reshape(shape);
}
Tensor& tensordot_out(const Tensor& self, const Tensor& other, IntArrayRef dims_self,
                      IntArrayRef dims_other, Tensor& out) {
  Tensor result = lamella::tensordot(self, other, dims_self, dims_other);
  ::lamella::detail::assign_out("tensordot", "out", out, result);
  return out;
}

Tensor kron(const Tensor& self, const Tensor& other) {
  int64_t rank = self.dim() > other.dim() ? self.dim() : other.dim();
  Dims a, b, shape;
  for (int64_t d = 0; d < rank; ++d) {
    int64_t x = d - (rank - self.dim()), y = d - (rank - other.dim());
    int64_t m = x < 0 ? 1 : self.sizes()[static_cast<size_t>(x)];
    int64_t n = y < 0 ? 1 : other.sizes()[static_cast<size_t>(y)];
    a.push_back(m);
    a.push_back(1);
    b.push_back(1);
    b.push_back(n);
    shape.push_back(m * n);
  }
  Tensor left = self.reshape(a), right = other.reshape(b);
  // A short last dimension is made part of the one before it.
  constexpr int64_t kShortLine = 64;
  const int64_t lines = rank == 0 ? 1 : a[a.size() - 2], length = rank == 0 ? 1 : b[b.size() - 1];
  if (lines > 1 && length > 1 && length < kShortLine) {
    a.back() = length;
    b[b.size() - 2] = lines;
    left = left.expand(a).flatten(-2);
    right = right.expand(b).flatten(-2);
  }
  return left.mul(right).reshape(shape);
}

}  // namespace lamella::native
