// Order statistics, and reductions and differences made of other operators.
#include <cmath>

#include "lamella/api/functions.h"
#include "lamella/api/tensor_operators.h"
#include "lamella/kernels/dims.h"
#include "lamella/kernels/selecting.h"
#include "lamella/native_functions.h"

namespace lamella::native {
namespace {

using Selected = std::tuple<Tensor, Tensor>;
using MaybeTensor = std::optional<Tensor>;

bool has(const MaybeTensor& tensor) { return tensor.has_value() && tensor->defined(); }

void check_selectable(const char* op, const Tensor& self, int64_t dim) {
  LAMELLA_CHECK(!self.is_complex(), op, ": expected 'self' to be real, got ", self.dtype());
  LAMELLA_CHECK_INDEX(self.dim() == 0 || self.size(dim) > 0, op,
                      ": expected 'self' to have elements along dimension ", dim, ", got shape ",
                      self.sizes());
}
// Removes the dimension of size 1 unless `keepdim`.
Selected without(Tensor values, Tensor indices, int64_t dim, bool keepdim) {
  if (keepdim) return {values, indices};
  Dims shape;
  for (int64_t d = 0; d < values.dim(); ++d) {
    if (d != dim) shape.push_back(values.sizes()[static_cast<size_t>(d)]);
  }
  return {lamella::_unsafe_view(values, shape), lamella::_unsafe_view(indices, shape)};
}
// The element at `position` (of size 1 along `dim`) of each sorted line, and its original index.
Selected at_position(const Selected& sorted, const Tensor& position, int64_t dim, bool keepdim) {
  return without(lamella::gather(std::get<0>(sorted), dim, position),
                 lamella::gather(std::get<1>(sorted), dim, position), dim, keepdim);
}
// Selects with the device's own kernel; nullopt if the device has none.
std::optional<Selected> select_directly(const char* op, const Tensor& self, int64_t dim,
                                        Selecting what, int64_t k, bool keepdim) {
  if (self.is_meta() || !select_on.supports(self.device().type())) {
    return std::nullopt;
  }
  Dims shape(self.sizes());
  shape[static_cast<size_t>(dim)] = 1;
  Tensor values = lamella::empty(shape, self.options());
  Tensor indices = lamella::empty(shape, self.options().dtype(kLong));
  if (values.numel() > 0) {
    select_on(self.device().type(), op, self.resolve_neg(), dim, what, k, values, indices);
  }
  return without(values, indices, dim, keepdim);
}
Selected only_element(const Tensor& self) {
  return {self.clone(), lamella::zeros({}, kLong, std::nullopt, self.device(), std::nullopt)};
}

// The median; NaN for lines that contain one, unless `skip_nan`.
Selected median_of(const char* op, const Tensor& self, int64_t dim, bool keepdim, bool skip_nan) {
  dim = maybe_wrap_dim(dim, self.dim(), op);
  check_selectable(op, self, dim);
  if (self.dim() == 0) return only_element(self);
  auto what = skip_nan ? Selecting::kNanMedian : Selecting::kMedian;
  if (auto result = select_directly(op, self, dim, what, 0, keepdim)) return *result;
  int64_t size = self.size(dim);
  Selected sorted = lamella::sort(self, std::optional<bool>(true), dim, false);
  Tensor nans = lamella::isnan(self).sum(dim, /*keepdim=*/true);
  Tensor position = skip_nan ? lamella::div(size - 1 - nans, 2, "floor").clamp_min(0)
                             : lamella::where(nans > 0, size - nans,
                                              lamella::full_like(nans, Scalar((size - 1) / 2)));
  return at_position(sorted, position, dim, keepdim);
}
Tensor median_of_all(const char* op, const Tensor& self, bool skip_nan) {
  if (self.numel() == 0) {
    LAMELLA_CHECK(self.is_floating_point(), op, ": expected 'self' to have elements, got shape ",
                  self.sizes());
    return lamella::full({}, std::nan(""), self.scalar_type(), std::nullopt, self.device(),
                         std::nullopt);
  }
  return std::get<0>(median_of(op, self.reshape({-1}), 0, false, skip_nan));
}

}  // namespace

Tensor median(const Tensor& self) { return median_of_all("median", self, false); }
Tensor nanmedian(const Tensor& self) { return median_of_all("nanmedian", self, true); }
Selected median(const Tensor& self, int64_t dim, bool keepdim) {
  return median_of("median", self, dim, keepdim, false);
}
Selected nanmedian(const Tensor& self, int64_t dim, bool keepdim) {
  return median_of("nanmedian", self, dim, keepdim, true);
}

Selected kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  dim = maybe_wrap_dim(dim, self.dim(), "kthvalue");
  check_selectable("kthvalue", self, dim);
  int64_t size = self.dim() == 0 ? 1 : self.size(dim);
  LAMELLA_CHECK(k >= 1 && k <= size, "kthvalue: expected 'k' in [1, ", size, "], got ", k);
  if (self.dim() == 0) return only_element(self);
  if (auto result = select_directly("kthvalue", self, dim, Selecting::kKth, k - 1, keepdim)) {
    return *result;
  }
  Dims shape(self.sizes());
  shape[static_cast<size_t>(dim)] = 1;
  Tensor position = lamella::full(shape, k - 1, kLong, std::nullopt, self.device(), std::nullopt);
  return at_position(lamella::sort(self, std::optional<bool>(true), dim, false), position, dim,
                     keepdim);
}

// The mode is the last element of the longest run in a sorted line. Of runs of that length, the
// first counts, which has the smallest value.
Selected mode(const Tensor& self, int64_t dim, bool keepdim) {
  dim = maybe_wrap_dim(dim, self.dim(), "mode");
  check_selectable("mode", self, dim);
  if (self.dim() == 0) return only_element(self);
  if (auto result = select_directly("mode", self, dim, Selecting::kMode, 0, keepdim)) {
    return *result;
  }
  int64_t size = self.size(dim);
  Selected sorted = lamella::sort(self, std::optional<bool>(true), dim, false);
  const Tensor& x = std::get<0>(sorted);
  Dims line(static_cast<size_t>(self.dim()), 1);
  line[static_cast<size_t>(dim)] = size;
  Tensor at = lamella::arange(size, kLong, std::nullopt, self.device(), std::nullopt).view(line);
  Tensor starts = lamella::zeros_like(x, kLong);
  if (size > 1) {
    Tensor is_new = x.narrow(dim, 1, size - 1) != x.narrow(dim, 0, size - 1);
    starts.narrow(dim, 1, size - 1).copy_(is_new * at.narrow(dim, 1, size - 1));
  }
  Tensor run = at - std::get<0>(lamella::cummax(starts, dim));
  return at_position(sorted, lamella::argmax(run, dim, true), dim, keepdim);
}

// ---- Without NaN ----

Tensor nanmean(const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
               std::optional<ScalarType> dtype) {
  LAMELLA_CHECK(self.is_floating_point() || self.is_complex(),
                "nanmean: expected 'self' to be floating point or complex, got ", self.dtype());
  Tensor nan = lamella::isnan(self);
  Tensor count = lamella::sum(nan.logical_not(), dim, keepdim);
  return lamella::div(lamella::sum(lamella::where(nan, Scalar(0), self), dim, keepdim, dtype),
                      count);
}

// ---- Distances ----

Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p) {
  return lamella::linalg_vector_norm(self - other, p, OptionalIntArrayRef(), false, std::nullopt);
}
// Slices along `dim` whose norm is above maxnorm are scaled down to it.
Tensor renorm(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  LAMELLA_CHECK(!p.isComplex() && p.toDouble() > 0, "renorm: expected 'p' to be positive, got ", p);
  LAMELLA_CHECK(!maxnorm.isComplex() && maxnorm.toDouble() >= 0,
                "renorm: expected 'maxnorm' not to be negative, got ", maxnorm);
  LAMELLA_CHECK(self.dim() > 1, "renorm: expected 'self' to have at least 2 dimensions, got ",
                self.dim());
  dim = maybe_wrap_dim(dim, self.dim(), "renorm");
  Dims others;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d != dim) others.push_back(d);
  }
  Tensor norm = lamella::linalg_vector_norm(self, p, IntArrayRef(others), true, std::nullopt);
  Tensor scale =
      lamella::where(norm > maxnorm, lamella::reciprocal(norm + 1e-7) * maxnorm, Scalar(1));
  return self * scale;
}
Tensor& renorm_(Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  return self.copy_(lamella::renorm(self.clone(), p, dim, maxnorm));
}

// ---- Differences and integrals ----

Tensor diff(const Tensor& self, int64_t n, int64_t dim, const MaybeTensor& prepend,
            const MaybeTensor& append) {
  LAMELLA_CHECK(n >= 0, "diff: expected 'n' not to be negative, got ", n);
  LAMELLA_CHECK(self.dim() >= 1,
                "diff: expected 'self' to have at least 1 dimension, got a tensor with 0");
  dim = maybe_wrap_dim(dim, self.dim(), "diff");
  if (n == 0) return self.clone();
  Tensor x = self;
  if (has(prepend) || has(append)) {
    std::vector<Tensor> parts;
    if (has(prepend)) parts.push_back(*prepend);
    parts.push_back(self);
    if (has(append)) parts.push_back(*append);
    x = lamella::cat(parts, dim);
  }
  int64_t times = std::min(n, x.size(dim));
  for (int64_t i = 0; i < times; ++i) {
    int64_t size = x.size(dim) - 1;
    Tensor next = x.narrow(dim, std::min<int64_t>(1, x.size(dim)), std::max<int64_t>(size, 0));
    Tensor now = x.narrow(dim, 0, std::max<int64_t>(size, 0));
    x = x.dtype() == kBool ? lamella::logical_xor(next, now) : next - now;
  }
  return x;
}

namespace {
struct Steps {
  Tensor sums;    // of neighbours
  Tensor widths;  // undefined if all are equal
  int64_t dim;
};
Steps steps_of(const char* op, const Tensor& y, const Tensor* x, int64_t dim) {
  LAMELLA_CHECK(y.dtype() != kBool, op, ": expected 'y' not to be bool");
  dim = maybe_wrap_dim(dim, y.dim(), op);
  int64_t size = std::max<int64_t>(y.size(dim) - 1, 0);
  int64_t from = std::min<int64_t>(1, y.size(dim));
  Tensor sums = y.narrow(dim, from, size) + y.narrow(dim, 0, size);
  if (x == nullptr) return {sums, Tensor(), dim};
  LAMELLA_CHECK(x->dtype() != kBool, op, ": expected 'x' not to be bool");
  Tensor places = *x;
  if (x->dim() == 1) {
    LAMELLA_CHECK(x->size(0) == y.size(dim), op, ": expected 'x' to have ", y.size(dim),
                  " elements, got ", x->size(0));
    Dims line(static_cast<size_t>(y.dim()), 1);
    line[static_cast<size_t>(dim)] = x->size(0);
    places = x->reshape(line);
  } else if (x->dim() < y.dim()) {
    Dims shape(static_cast<size_t>(y.dim() - x->dim()), 1);
    for (int64_t n : x->sizes()) shape.push_back(n);
    places = x->reshape(shape);
  }
  int64_t count = std::max<int64_t>(places.size(dim) - 1, 0);
  return {sums,
          places.narrow(dim, std::min<int64_t>(1, places.size(dim)), count) -
              places.narrow(dim, 0, count),
          dim};
}
}  // namespace

// The area below the lines that join adjacent samples.
Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  Steps steps = steps_of("trapezoid", y, &x, dim);
  return (steps.sums * steps.widths).sum(steps.dim) / 2;
}
Tensor trapezoid(const Tensor& y, const Scalar& dx, int64_t dim) {
  Steps steps = steps_of("trapezoid", y, nullptr, dim);
  return steps.sums.sum(steps.dim) * dx / 2;
}
Tensor trapz(const Tensor& y, double dx, int64_t dim) {
  return lamella::trapezoid(y, Scalar(dx), dim);
}
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  Steps steps = steps_of("cumulative_trapezoid", y, &x, dim);
  return (steps.sums * steps.widths).cumsum(steps.dim) / 2;
}
Tensor cumulative_trapezoid(const Tensor& y, const Scalar& dx, int64_t dim) {
  Steps steps = steps_of("cumulative_trapezoid", y, nullptr, dim);
  return steps.sums.cumsum(steps.dim) * dx / 2;
}

// ---- Covariance: rows are variables, columns are observations ----

Tensor cov(const Tensor& self, int64_t correction, const MaybeTensor& fweights,
           const MaybeTensor& aweights) {
  LAMELLA_CHECK(self.dim() <= 2, "cov: expected 'self' to have at most 2 dimensions, got ",
                self.dim());
  LAMELLA_CHECK(self.dtype() != kBool, "cov: expected 'self' not to be bool");
  Tensor x = self.dim() < 2 ? self.reshape({1, -1}) : self;
  if (is_integral(x.dtype(), true)) x = x.to(kFloat);
  int64_t count = x.size(1);
  auto check_weights = [&](const char* name, const Tensor& w) {
    LAMELLA_CHECK(w.dim() == 1 && w.numel() == count, "cov: expected '", name, "' to be of shape [",
                  count, "], got ", w.sizes());
  };
  auto check_signs = [](const char* name, const Tensor& w) {
    if (w.is_meta() || w.numel() == 0) return;
    LAMELLA_CHECK(!lamella::lt(w, 0).any().item().toBool(), "cov: expected '", name,
                  "' to have no negative element, got ", w.min().item());
  };
  Tensor weights;
  if (has(fweights)) {
    check_weights("fweights", *fweights);
    LAMELLA_CHECK(is_integral(fweights->dtype(), false),
                  "cov: expected 'fweights' to be of integers, got ", fweights->dtype());
    check_signs("fweights", *fweights);
    weights = *fweights;
  }
  if (has(aweights)) {
    check_weights("aweights", *aweights);
    LAMELLA_CHECK(aweights->is_floating_point(),
                  "cov: expected 'aweights' to be floating point, got ", aweights->dtype());
    check_signs("aweights", *aweights);
    weights = weights.defined() ? weights * *aweights : *aweights;
  }
  if (!weights.defined()) {
    Tensor centred = x - x.mean(1, /*keepdim=*/true);
    double norm = std::max<double>(0, static_cast<double>(count) - static_cast<double>(correction));
    Tensor product = lamella::mm(centred, centred.t().conj_physical());
    return lamella::squeeze(product / norm);
  }
  Tensor total = weights.sum();
  Tensor mean = (x * weights).sum(1, /*keepdim=*/true) / total;
  Tensor norm = correction == 0 ? total
                : has(aweights) ? total - (weights * *aweights).sum() / total * correction
                                : total - correction;
  Tensor centred = x - mean;
  Tensor product = lamella::mm(centred * weights, centred.t().conj_physical());
  return lamella::squeeze(product / norm.clamp_min(0));
}
Tensor corrcoef(const Tensor& self) {
  LAMELLA_CHECK(self.dim() <= 2, "corrcoef: expected 'self' to have at most 2 dimensions, got ",
                self.dim());
  Tensor c = lamella::cov(self, 1, std::nullopt, std::nullopt);
  if (c.dim() == 0) return c / c;  // NOLINT(misc-redundant-expression): NaN where nothing varies
  Tensor variances = c.diagonal(0, 0, 1);
  Tensor deviations = (c.is_complex() ? lamella::real(variances) : variances).sqrt();
  c = c / deviations.unsqueeze(1) / deviations.unsqueeze(0);
  // Rounding may have produced values outside [-1, 1].
  if (!c.is_complex()) return c.clamp(-1, 1);
  return lamella::view_as_complex(lamella::view_as_real(c).clamp(-1, 1));
}

}  // namespace lamella::native
