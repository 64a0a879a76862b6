// Helpers for the derivatives of reductions, running sums and softmax.
#include "lamella/layers/autograd/formulas/reduce.h"

#include <cmath>
#include <limits>

#include "lamella/layers/autograd/formulas/views.h"

namespace lamella {
namespace {

constexpr double kLowest = -std::numeric_limits<float>::max();

uint64_t dim_mask(OptionalIntArrayRef dim, int64_t ndim) {
  if (!dim.has_value() || dim->empty()) return ~uint64_t{0};
  uint64_t mask = 0;
  for (int64_t d : *dim) mask |= uint64_t{1} << (d < 0 ? d + ndim : d);
  return mask;
}
// False for a 0-dimensional tensor, which acts as one element along dimension 0.
bool has_dim(const Tensor& x) { return x.dim() > 0; }
int64_t wrap(int64_t dim, const Tensor& x) { return dim < 0 ? dim + x.dim() : dim; }

}  // namespace

Tensor with_reduced_dims(const Tensor& x, OptionalIntArrayRef dim, bool keepdim, int64_t ndim) {
  if (keepdim || x.dim() == 0) return x;  // broadcasts as it is
  uint64_t mask = dim_mask(dim, ndim);
  std::vector<int64_t> shape;
  size_t at = 0;
  for (int64_t d = 0; d < ndim; ++d) shape.push_back((mask >> d) & 1 ? 1 : x.sizes()[at++]);
  return x.reshape(shape);
}
int64_t reduced_numel(IntArrayRef sizes, OptionalIntArrayRef dim) {
  uint64_t mask = dim_mask(dim, static_cast<int64_t>(sizes.size()));
  int64_t count = 1;
  for (size_t d = 0; d < sizes.size(); ++d) count *= (mask >> d) & 1 ? sizes[d] : 1;
  return count;
}

Tensor mean_backward(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dim, bool keepdim) {
  Tensor each = grad / reduced_numel(sizes, dim);
  return with_reduced_dims(each, dim, keepdim, static_cast<int64_t>(sizes.size())).expand(sizes);
}

// ---- Products ----

Tensor product_of_others(const Tensor& self, int64_t dim) {
  if (!has_dim(self)) return lamella::ones_like(self);
  dim = wrap(dim, self);
  int64_t size = self.size(dim);
  if (size <= 1) return lamella::ones_like(self);
  Tensor one = lamella::ones_like(self.narrow(dim, 0, 1));
  Tensor before = lamella::cat({one, self.narrow(dim, 0, size - 1).cumprod(dim)}, dim);
  Tensor behind =
      lamella::cat({self.narrow(dim, 1, size - 1).flip({dim}).cumprod(dim).flip({dim}), one}, dim);
  return before * behind;
}
Tensor prod_backward(const Tensor& grad, const Tensor& self, int64_t dim, bool keepdim) {
  Tensor x = self.to(grad.scalar_type());
  return with_reduced_dims(grad, OptionalIntArrayRef(dim), keepdim, x.dim()) *
         conj_of(product_of_others(x, dim));
}
Tensor prod_tangent(const Tensor& self_p, const Tensor& self_t, int64_t dim, bool keepdim,
                    ScalarType dtype) {
  Tensor terms = product_of_others(self_p.to(dtype), dim) * self_t.to(dtype);
  return has_dim(terms) ? terms.sum(dim, keepdim) : terms;
}

// ---- Extremes ----

namespace {
Tensor count_of(const Tensor& mask, IntArrayRef dim) { return mask.sum(dim, /*keepdim=*/true); }

// Where the result came from: elements equal to it, of which NaN is not one, or every NaN.
Tensor chosen_by(const Tensor& result, const Tensor& self) {
  Tensor equal = result == self;
  if (!is_floating_point(self.scalar_type())) return equal;
  return equal | ((result != result) & (self != self));
}
}  // namespace
Tensor extreme_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                        IntArrayRef dim, bool keepdim) {
  Tensor chosen = chosen_by(with_reduced_dims(result, dim, keepdim, self.dim()), self);
  Tensor share = with_reduced_dims(grad, dim, keepdim, self.dim()) / count_of(chosen, dim);
  return keep(share, chosen);
}
Tensor extreme_tangent(const Tensor& self_p, const Tensor& self_t, const Tensor& result,
                       IntArrayRef dim, bool keepdim) {
  Tensor chosen = chosen_by(with_reduced_dims(result, dim, keepdim, self_p.dim()), self_p);
  return keep(self_t / count_of(chosen, dim), chosen).sum(dim, keepdim);
}
Tensor extremes_backward(const Tensor& grad_min, const Tensor& grad_max, const Tensor& self,
                         const Tensor& min, const Tensor& max, std::optional<int64_t> dim,
                         bool keepdim) {
  std::vector<int64_t> dims = dims_of(dim);
  Tensor sum;
  if (grad_min.defined()) sum = extreme_backward(grad_min, self, min, dims, keepdim);
  if (!grad_max.defined()) return sum;
  Tensor of_max = extreme_backward(grad_max, self, max, dims, keepdim);
  return sum.defined() ? sum + of_max : of_max;
}
std::vector<int64_t> dims_of(std::optional<int64_t> dim) {
  return dim.has_value() ? std::vector<int64_t>{*dim} : std::vector<int64_t>{};
}

Tensor running_extreme_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& indices,
                                int64_t dim) {
  if (sizes.empty() || grad.numel() == 0) return grad;
  return lamella::zeros_like(grad).scatter_add(dim, indices, grad);
}
Tensor running_extreme_tangent(const Tensor& self_t, const Tensor& indices, int64_t dim) {
  return has_dim(self_t) ? self_t.gather(dim, indices) : self_t.clone();
}

// ---- Variance ----

namespace {
double degrees_of_freedom(const Tensor& self, OptionalIntArrayRef dim,
                          const std::optional<Scalar>& correction) {
  double count = static_cast<double>(reduced_numel(self.sizes(), dim));
  double free = count - (correction.has_value() ? correction->toDouble() : 1.0);
  return free > 0 ? free : 0;
}
Tensor from_mean(const Tensor& self, OptionalIntArrayRef dim) {
  return self - self.mean(dim, /*keepdim=*/true);
}
}  // namespace
Tensor var_backward(const Tensor& grad, const Tensor& self, OptionalIntArrayRef dim,
                    const std::optional<Scalar>& correction, bool keepdim) {
  Tensor g = with_reduced_dims(grad, dim, keepdim, self.dim());
  return g * (2 / degrees_of_freedom(self, dim, correction)) * from_mean(self, dim);
}
Tensor var_tangent(const Tensor& self_p, const Tensor& self_t, OptionalIntArrayRef dim,
                   const std::optional<Scalar>& correction, bool keepdim) {
  Tensor terms = real_of(conj_of(from_mean(self_p, dim)) * self_t);
  return terms.sum(dim, keepdim) * (2 / degrees_of_freedom(self_p, dim, correction));
}
Tensor deviation_to_variance(const Tensor& x, const Tensor& deviation) {
  return keep(x / (deviation * 2), deviation != 0);
}

// ---- Norms ----

namespace {
// The derivative of |x|^p / p by x: x |x|^(p - 2), which also covers complex x.
Tensor power_slope(const Tensor& self, double p) {
  if (p == 1) return self.sgn();
  if (p == 2) return self;
  Tensor size = self.abs();
  if (p > 2) return self * size.pow(p - 2);
  return keep(self.sgn() * size.pow(p - 1), size != 0);
}
// The derivative of the norm by each element: the norm's tangent is the sum of
// conj(slope) * tangent.
Tensor norm_slope(const Tensor& self, double p, const Tensor& norm, OptionalIntArrayRef dim) {
  if (std::isinf(p)) {
    Tensor size = self.abs();
    Tensor chosen =
        (size == norm).logical_or(lamella::isnan(size).logical_and(lamella::isnan(norm)));
    return keep(self.sgn() / chosen.sum(dim, /*keepdim=*/true), chosen);
  }
  Tensor slope = power_slope(self, p);
  if (p == 1) return slope;
  Tensor scale = p == 2 ? norm.reciprocal() : norm.pow(1 - p);
  return keep(slope * scale, norm != 0);
}
}  // namespace
Tensor norm_backward(const Tensor& grad, const Tensor& self, const Scalar& ord,
                     const Tensor& result, OptionalIntArrayRef dim, bool keepdim) {
  double p = ord.toDouble();
  if (p == 0) return lamella::zeros_like(self);
  Tensor g = with_reduced_dims(grad, dim, keepdim, self.dim());
  Tensor norm = with_reduced_dims(result, dim, keepdim, self.dim());
  return g * norm_slope(self, p, norm, dim);
}
Tensor norm_tangent(const Tensor& self_p, const Tensor& self_t, const Scalar& ord,
                    const Tensor& result, OptionalIntArrayRef dim, bool keepdim) {
  double p = ord.toDouble();
  if (p == 0) return lamella::zeros_like(result);
  Tensor norm = with_reduced_dims(result, dim, keepdim, self_p.dim());
  Tensor terms = real_of(conj_of(norm_slope(self_p, p, norm, dim)) * self_t);
  return terms.sum(dim, keepdim, result.scalar_type());
}

namespace {
Tensor rows_apart(const Tensor& x1, const Tensor& x2) {
  return x1.unsqueeze(-2) - x2.unsqueeze(-3);
}
}  // namespace
Tensor cdist_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                      const Tensor& result) {
  if (!differentiated_again(grad) && !differentiated_again(x1) && !differentiated_again(x2)) {
    return _cdist_backward(grad, x1, x2, p, result);
  }
  const int64_t last[1] = {-1};
  Tensor apart = norm_backward(grad, rows_apart(x1, x2), p, result, last, false);
  return sum_to(apart.sum(IntArrayRef(int64_t{-2})), x1.sizes());
}
Tensor cdist_tangent(const Tensor& x1_p, const Tensor& x1_t, const Tensor& x2_p, const Tensor& x2_t,
                     double p, const Tensor& result) {
  const int64_t last[1] = {-1};
  return norm_tangent(rows_apart(x1_p, x2_p), rows_apart(x1_t, x2_t), p, result, last, false);
}

Tensor logsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                          IntArrayRef dim, bool keepdim) {
  Tensor total = with_reduced_dims(result, dim, keepdim, self.dim());
  return with_reduced_dims(grad, dim, keepdim, self.dim()) * conj_of((self - total).exp());
}
Tensor logsumexp_tangent(const Tensor& self_p, const Tensor& self_t, IntArrayRef dim,
                         bool keepdim) {
  Tensor total = lamella::logsumexp(self_p, dim, /*keepdim=*/true);
  return (self_t * (self_p - total).exp()).sum(dim, keepdim);
}

// ---- Along one dimension ----

Tensor sum_to_end(const Tensor& x, int64_t dim) {
  if (x.numel() <= 1) return x;
  return x.flip({dim}).cumsum(dim).flip({dim});
}

namespace {
struct Zeros {
  Tensor all;    // where self is 0
  Tensor first;  // where it is so for the first time along the dimension
};
Zeros find_zeros(const Tensor& self, int64_t dim) {
  Tensor all = self == 0;
  return {all, all.logical_and(all.cumsum(dim) == 1)};
}
// For every pair (i, k) the product of the elements up to k except element i; 0 where i > k.
Tensor cumprod_slopes(const Tensor& self, int64_t dim) {
  int64_t size = self.size(dim);
  Tensor x = self.movedim(dim, -1).unsqueeze(-2);  // [..., 1, k]
  Tensor same = lamella::eye(size, kBool, std::nullopt, self.device(), std::nullopt);
  return lamella::where(same, Scalar(1), x).cumprod(-1).triu();
}
}  // namespace
Tensor cumprod_backward(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& result) {
  if (!has_dim(self) || self.numel() == 0) return grad;
  dim = wrap(dim, self);
  Tensor x = self.to(grad.scalar_type());
  if (differentiated_again(self)) {
    Tensor g = grad.movedim(dim, -1).unsqueeze(-2);
    return (g * conj_of(cumprod_slopes(x, dim))).sum(-1).movedim(-1, dim);
  }
  // Before the first zero, the product without element i is the product divided by it. At the first
  // zero it is the product with a 1 in its place; behind it all products are zero.
  Zeros zeros = find_zeros(x, dim);
  Tensor divisor = lamella::where(zeros.all, Scalar(1), x);
  Tensor plain = sum_to_end(grad * conj_of(result), dim) / conj_of(divisor);
  Tensor filled = lamella::where(zeros.first, Scalar(1), x).cumprod(dim);
  return lamella::where(zeros.first, sum_to_end(grad * conj_of(filled), dim), plain);
}
Tensor cumprod_tangent(const Tensor& self_p, const Tensor& self_t, int64_t dim,
                       const Tensor& result) {
  if (!has_dim(self_p) || self_p.numel() == 0) return self_t.to(result.scalar_type());
  Tensor x = self_p.to(result.scalar_type());
  Tensor t = self_t.to(result.scalar_type());
  if (x.requires_grad()) {  // the short way takes zeros for constants
    Tensor slopes = cumprod_slopes(x, wrap(dim, self_p));
    return (t.movedim(dim, -1).unsqueeze(-1) * slopes).sum(-2).movedim(-1, dim);
  }
  Zeros zeros = find_zeros(x, dim);
  Tensor plain = keep(t / lamella::where(zeros.all, Scalar(1), x), zeros.all.logical_not());
  Tensor filled = lamella::where(zeros.first, Scalar(1), x).cumprod(dim);
  return result * plain.cumsum(dim) + filled * keep(t, zeros.first).cumsum(dim);
}

namespace {
// log(x) where x > 0 (complex: x != 0), elsewhere a number whose exp is 0.
Tensor log_or_lowest(const Tensor& x) {
  Tensor has_log = x.is_complex() ? x.ne(0) : x > 0;
  return lamella::where(has_log, lamella::where(has_log, x, Scalar(1)).log(), Scalar(kLowest));
}
Tensor logcumsumexp_from_end(const Tensor& x, int64_t dim) {
  return x.flip({dim}).logcumsumexp(dim).flip({dim});
}
}  // namespace
Tensor logcumsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                             int64_t dim) {
  if (self.numel() == 0 || !has_dim(self)) return grad;
  // Computed with logarithms, as exp(self) alone could overflow. Positive and negative real
  // gradients are handled separately, since only positive numbers have real logarithms.
  auto part = [&](const Tensor& g) {
    return (logcumsumexp_from_end(log_or_lowest(g) - result, dim) + self).exp();
  };
  return self.is_complex() ? conj_of(part(conj_of(grad))) : part(grad) - part(-grad);
}
Tensor logcumsumexp_tangent(const Tensor& self_p, const Tensor& self_t, const Tensor& result,
                            int64_t dim) {
  if (!has_dim(self_p) || self_p.numel() == 0) return self_t.clone();
  // Where only log(0) was summed so far, the tangent is zero.
  Tensor real = result.is_complex() ? lamella::real(result) : result;
  Tensor sums = lamella::where(lamella::isneginf(real), Scalar(0), result);
  auto part = [&](const Tensor& t) {
    return ((self_p + log_or_lowest(t)).logcumsumexp(dim) - sums).exp();
  };
  return self_p.is_complex() ? part(self_t) : part(self_t) - part(-self_t);
}

Tensor softmax_tangent(const Tensor& self_t, const Tensor& result, int64_t dim) {
  Tensor t = self_t.to(result.scalar_type());
  return result * (t - (t * result).sum(dim, /*keepdim=*/true));
}
Tensor log_softmax_tangent(const Tensor& self_t, const Tensor& result, int64_t dim) {
  Tensor t = self_t.to(result.scalar_type());
  return t - (t * result.exp()).sum(dim, /*keepdim=*/true);
}
Tensor softmax_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& output,
                               int64_t dim) {
  Tensor g = grad.to(output.scalar_type());
  Tensor flowed = (grad_output * output).sum(dim, /*keepdim=*/true);
  return g * (grad_output - flowed) - grad_output * (g * output).sum(dim, /*keepdim=*/true);
}
Tensor log_softmax_double_backward(const Tensor& grad, const Tensor& grad_output,
                                   const Tensor& output, int64_t dim) {
  return -grad.to(output.scalar_type()) * output.exp() * grad_output.sum(dim, /*keepdim=*/true);
}
Tensor log_softmax_backward_tangent(const Tensor& grad_output_p, const Tensor& grad_output_t,
                                    const Tensor& output_p, const Tensor& output_t, int64_t dim) {
  Tensor sum = grad_output_t.sum(dim, /*keepdim=*/true);
  sum = sum + output_t * grad_output_p.sum(dim, /*keepdim=*/true);
  return grad_output_t - output_p.exp() * sum;
}

}  // namespace lamella
