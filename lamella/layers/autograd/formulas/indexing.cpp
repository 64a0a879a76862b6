// Derivatives of indexing, joining and sorting.
#include "lamella/layers/autograd/formulas/indexing.h"

#include "lamella/api/functions.h"
#include "lamella/api/tensor_operators.h"
#include "lamella/core/error.h"
#include "lamella/core/wrap_dim.h"
#include "lamella/layers/autograd/formulas/views.h"

namespace lamella {

namespace {
// The leading part, of the given sizes, of a tensor.
Tensor leading(const Tensor& tensor, IntArrayRef sizes) {
  Tensor part = tensor;
  for (size_t d = 0; d < sizes.size() && d < tensor.sizes().size(); ++d) {
    if (part.sizes()[d] != sizes[d]) part = part.narrow(static_cast<int64_t>(d), 0, sizes[d]);
  }
  return part;
}
// The reverse: pads a tensor with zeros at the end of each dimension, up to `sizes`.
Tensor padded(const Tensor& tensor, IntArrayRef sizes) {
  if (tensor.sizes().equals(sizes)) return tensor;
  if (tensor.numel() == 0 || tensor.sizes().size() != sizes.size()) {
    return tensor.numel() == 0 ? tensor.new_zeros(sizes) : tensor.reshape(sizes);
  }
  std::vector<int64_t> pad;
  for (size_t d = sizes.size(); d-- > 0;) {
    pad.push_back(0);
    pad.push_back(sizes[d] - tensor.sizes()[d]);
  }
  return lamella::constant_pad_nd(tensor, pad, 0);
}
}  // namespace

// ---- Indexing ----

Tensor index_backward(const Tensor& grad, IntArrayRef sizes, TensorList indices) {
  return grad.new_zeros(sizes).index_put_(indices, grad, true);
}
Tensor index_put_backward(const Tensor& grad, TensorList indices) {
  return grad.index_put(indices, grad.new_zeros({}));
}
Tensor gather_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim, const Tensor& index) {
  return grad.new_zeros(sizes).scatter_add_(dim, index, grad);
}
Tensor take_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& index) {
  return grad.new_zeros(sizes).put_(index, grad, true);
}
Tensor put_source_backward(const Tensor& grad, const Tensor& index, IntArrayRef source_sizes) {
  return grad.take(index).reshape(source_sizes);
}
Tensor masked_select_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& mask) {
  // The engine sums over what self was broadcast to.
  Tensor like = grad.new_zeros({}).expand(sizes);
  return lamella::masked_select_backward(grad, like, mask);
}

Tensor scatter_source_backward(const Tensor& grad, int64_t dim, const Tensor& index,
                               IntArrayRef src_sizes) {
  return padded(grad.gather(dim, index), src_sizes);
}
Tensor index_source_backward(const Tensor& grad, int64_t dim, const Tensor& index,
                             IntArrayRef source_sizes) {
  Tensor picked = grad.index_select(dim, index);
  return picked.sizes().equals(source_sizes) ? picked : picked.reshape(source_sizes);
}
Tensor masked_fill_value_backward(const Tensor& grad, const Tensor& mask) {
  return lamella::where(mask, grad, grad.new_zeros({})).sum();
}
Tensor index_fill_value_backward(const Tensor& grad, int64_t dim, const Tensor& index) {
  Tensor filled = lamella::zeros_like(grad, TensorOptions(kBool)).index_fill(dim, index, true);
  return masked_fill_value_backward(grad, filled);
}

// ---- scatter_reduce ----

namespace {
struct ScatterGradients {
  Tensor self, src;
};

// d result / d self and d result / d src, each times the gradient of the element it went to.
ScatterGradients scatter_gradients(const Tensor& grad, const Tensor& self, int64_t dim,
                                   const Tensor& index, const Tensor& src, std::string_view reduce,
                                   bool include_self, const Tensor& result) {
  if (reduce == "sum" || reduce == "add") return {grad, grad.gather(dim, index)};
  if (reduce == "mean") {
    Tensor count = include_self ? lamella::ones_like(grad) : lamella::zeros_like(grad);
    count = count.scatter_add(dim, index, lamella::ones_like(src)).clamp_min(1);
    Tensor share = grad.div(count);
    return {share, share.gather(dim, index)};
  }
  if (reduce == "prod" || reduce == "multiply") {
    // The product of the others: divided out where that can be, computed again around zeros.
    Tensor self_others = self.masked_fill(self.eq(0), 1);
    Tensor without_zero = self_others.scatter_reduce(dim, index, src, "prod", include_self);
    Tensor to_self = grad.mul(conj_of(without_zero.div(self_others)));
    Tensor zero = src.eq(0);
    Tensor zeros = lamella::zeros_like(self).scatter_add(dim, index, zero.to(self.scalar_type()));
    Tensor only_zero = zero.logical_and(zeros.gather(dim, index).eq(1));
    Tensor others =
        self.scatter_reduce(dim, index, src.masked_fill(only_zero, 1), "prod", include_self);
    Tensor by_division = result.gather(dim, index).div(src.masked_fill(zero, 1));
    Tensor factor = lamella::where(only_zero, others.gather(dim, index), by_division);
    return {to_self, grad.gather(dim, index).mul(conj_of(factor))};
  }
  LAMELLA_CHECK(reduce == "amax" || reduce == "amin",
                "scatter_reduce: expected 'reduce' to be sum, prod, mean, amax or amin, got '",
                reduce, "'");
  // Elements that share the extreme value share its gradient.
  Tensor self_has = self.eq(result).to(grad.scalar_type());
  if (!include_self) self_has = self_has.scatter(dim, index, 0);
  Tensor src_has = src.eq(result.gather(dim, index)).to(grad.scalar_type());
  Tensor holders = self_has.scatter_add(dim, index, src_has);
  Tensor share = grad.div(holders.clamp_min(1));
  return {self_has.mul(share), src_has.mul(share.gather(dim, index))};
}
}  // namespace

std::tuple<Tensor, Tensor> scatter_reduce_backward(const Tensor& grad, const Tensor& self,
                                                   int64_t dim, const Tensor& index,
                                                   const Tensor& src, std::string_view reduce,
                                                   bool include_self, const Tensor& result,
                                                   std::array<bool, 2> wanted) {
  if (index.numel() == 0) {
    return {wanted[0] ? grad : Tensor(), wanted[1] ? lamella::zeros_like(src) : Tensor()};
  }
  ScatterGradients gradients = scatter_gradients(
      grad, self, dim, index, leading(src, index.sizes()), reduce, include_self, result);
  if (!include_self) gradients.self = gradients.self.scatter(dim, index, 0);
  return {wanted[0] ? gradients.self : Tensor(),
          wanted[1] ? padded(gradients.src, src.sizes()) : Tensor()};
}

Tensor scatter_reduce_forward(const Tensor& self_p, const Tensor& self_t, int64_t dim,
                              const Tensor& index, const Tensor& src_p, const Tensor& src_t,
                              std::string_view reduce, bool include_self, const Tensor& result) {
  // Each element of self and src has one factor, which the backward of ones shows.
  auto [to_self, to_src] =
      scatter_reduce_backward(lamella::ones_like(result), self_p, dim, index, src_p, reduce,
                              include_self, result, {true, true});
  return self_t.mul(conj_of(to_self)).scatter_add(dim, index, src_t.mul(conj_of(to_src)));
}

namespace {
// An index of slices along `dim` as one of the elements of `source`.
Tensor spread_index(const Tensor& index, int64_t dim, const Tensor& source) {
  if (source.dim() <= 1) return index.reshape(source.sizes());
  std::vector<int64_t> shape(source.sizes().size(), 1);
  shape[static_cast<size_t>(maybe_wrap_dim(dim, source.dim(), "index_reduce"))] = index.numel();
  return index.reshape(shape).expand(source.sizes());
}
}  // namespace

std::tuple<Tensor, Tensor> index_reduce_backward(const Tensor& grad, const Tensor& self,
                                                 int64_t dim, const Tensor& index,
                                                 const Tensor& source, std::string_view reduce,
                                                 bool include_self, const Tensor& result,
                                                 std::array<bool, 2> wanted) {
  return scatter_reduce_backward(grad, self, dim, spread_index(index, dim, source), source, reduce,
                                 include_self, result, wanted);
}
Tensor index_reduce_forward(const Tensor& self_p, const Tensor& self_t, int64_t dim,
                            const Tensor& index, const Tensor& source_p, const Tensor& source_t,
                            std::string_view reduce, bool include_self, const Tensor& result) {
  return scatter_reduce_forward(self_p, self_t, dim, spread_index(index, dim, source_p), source_p,
                                source_t, reduce, include_self, result);
}

// ---- Joining and sorting ----

std::vector<Tensor> cat_backward(const Tensor& grad, ArrayRef<IntArrayRef> sizes, int64_t dim) {
  dim = maybe_wrap_dim(dim, grad.dim(), "cat");
  std::vector<Tensor> parts;
  parts.reserve(sizes.size());
  int64_t start = 0;
  for (IntArrayRef shape : sizes) {
    // cat takes tensors of shape [0] among those of any shape.
    if (shape.size() == 1 && shape[0] == 0) {
      parts.push_back(grad.new_zeros({0}));
      continue;
    }
    int64_t length = shape[static_cast<size_t>(dim)];
    parts.push_back(grad.narrow(dim, start, length));
    start += length;
  }
  return parts;
}

std::vector<Tensor> block_diag_backward(const Tensor& grad, ArrayRef<IntArrayRef> sizes) {
  std::vector<Tensor> parts;
  int64_t row = 0, column = 0;
  for (IntArrayRef shape : sizes) {
    int64_t rows = shape.size() == 2 ? shape[0] : 1, columns = shape.empty() ? 1 : shape.back();
    parts.push_back(grad.narrow(0, row, rows).narrow(1, column, columns).reshape(shape));
    row += rows;
    column += columns;
  }
  return parts;
}

Tensor picked_along(const Tensor& tangent, int64_t dim, const Tensor& indices, bool keepdim) {
  if (keepdim || tangent.dim() == 0) return tangent.gather(dim, indices);
  return tangent.gather(dim, indices.unsqueeze(dim)).squeeze(dim);
}

}  // namespace lamella
