// Quantiles, numerical gradients and random numbers, made of other operators.
#include <cmath>

#include "lamella/api/functions.h"
#include "lamella/api/tensor_operators.h"
#include "lamella/kernels/default_dtype.h"
#include "lamella/kernels/dims.h"
#include "lamella/native_functions.h"

namespace lamella::native {
namespace {
using MaybeDim = std::optional<int64_t>;
using MaybeGenerator = std::optional<Generator>;
}  // namespace

Tensor complex_(const Tensor& real, const Tensor& imag) {
  LAMELLA_CHECK(real.is_floating_point(), "complex: expected 'real' to be floating point, got ",
                real.dtype());
  LAMELLA_CHECK(real.dtype() == imag.dtype(), "complex: expected 'imag' to have dtype ",
                real.dtype(), ", got ", imag.dtype());
  std::vector<Tensor> parts = lamella::broadcast_tensors({real, imag});
  return lamella::view_as_complex(lamella::stack(parts, -1));
}

// ---- Quantiles ----

namespace {

Tensor quantile_of(const char* op, const Tensor& self, const Tensor& q, MaybeDim dim, bool keepdim,
                   std::string_view interpolation, bool skip_nan) {
  LAMELLA_CHECK(self.numel() > 0, op, ": expected 'self' to have elements, got shape ",
                self.sizes());
  LAMELLA_CHECK(self.dtype() == kFloat || self.dtype() == kDouble, op,
                ": expected 'self' to have dtype float32 or float64, got ", self.dtype());
  LAMELLA_CHECK(q.dim() <= 1, op, ": expected 'q' to have at most 1 dimension, got ", q.sizes());
  LAMELLA_CHECK(q.dtype() == self.dtype(), op, ": expected 'q' to have dtype ", self.dtype(),
                ", got ", q.dtype());
  bool blend = interpolation == "linear" || interpolation == "midpoint";
  LAMELLA_CHECK(
      blend || interpolation == "lower" || interpolation == "higher" || interpolation == "nearest",
      op,
      ": expected 'interpolation' to be 'linear', 'lower', 'higher', 'midpoint' or "
      "'nearest', got '",
      interpolation, "'");
  // The shape of one quantile.
  Dims shape(self.sizes());
  Tensor x;
  if (dim.has_value()) {
    int64_t d = maybe_wrap_dim(*dim, self.dim(), op);
    x = self.dim() == 0 ? self.reshape({1}) : self.movedim(d, -1);
    if (self.dim() > 0) {
      if (keepdim) {
        shape[static_cast<size_t>(d)] = 1;
      } else {
        shape = Dims(x.sizes().slice(0, x.sizes().size() - 1));
      }
    }
  } else {
    x = self.reshape({-1});
    shape = Dims(keepdim ? static_cast<size_t>(self.dim()) : 0, 1);
  }
  int64_t last = x.size(-1) - 1;
  Tensor sorted = std::get<0>(lamella::sort(x, -1, false));
  Tensor nans = lamella::isnan(x).sum(-1, /*keepdim=*/true);
  // [..., number of quantiles]. NaN sorts last, and all quantiles of its line are NaN.
  Tensor ranks = skip_nan ? q * (last - nans).clamp_min(0)
                          : lamella::where(nans > 0, Scalar(static_cast<double>(last)), q * last);
  ranks = ranks.to(self.scalar_type());
  if (ranks.dim() < sorted.dim()) ranks = ranks.unsqueeze(-1);
  if (interpolation == "lower") ranks = ranks.floor();
  if (interpolation == "higher") ranks = ranks.ceil();
  if (interpolation == "nearest") ranks = ranks.round();
  Tensor below = ranks.floor();
  Tensor result = sorted.gather(-1, below.to(kLong));
  if (blend) {
    Tensor above = sorted.gather(-1, ranks.ceil().to(kLong));
    Tensor weights = interpolation == "midpoint" ? lamella::full_like(ranks, 0.5) : ranks - below;
    result = result.lerp(above, weights);
  }
  if (q.dim() == 0) return result.reshape(shape);
  Dims all(1, q.numel());
  for (int64_t n : shape) all.push_back(n);
  return result.movedim(-1, 0).reshape(all);
}
Tensor one_quantile(const char* op, const Tensor& self, double q) {
  LAMELLA_CHECK(q >= 0 && q <= 1, op, ": expected 'q' in [0, 1], got ", q);
  return lamella::full({}, q, self.scalar_type(), std::nullopt, self.device(), std::nullopt);
}

}  // namespace

Tensor quantile(const Tensor& self, const Tensor& q, MaybeDim dim, bool keepdim,
                std::string_view interpolation) {
  return quantile_of("quantile", self, q, dim, keepdim, interpolation, false);
}
Tensor quantile(const Tensor& self, double q, MaybeDim dim, bool keepdim,
                std::string_view interpolation) {
  return quantile_of("quantile", self, one_quantile("quantile", self, q), dim, keepdim,
                     interpolation, false);
}
Tensor nanquantile(const Tensor& self, const Tensor& q, MaybeDim dim, bool keepdim,
                   std::string_view interpolation) {
  return quantile_of("nanquantile", self, q, dim, keepdim, interpolation, true);
}
Tensor nanquantile(const Tensor& self, double q, MaybeDim dim, bool keepdim,
                   std::string_view interpolation) {
  return quantile_of("nanquantile", self, one_quantile("nanquantile", self, q), dim, keepdim,
                     interpolation, true);
}

// ---- Gradients of samples on a grid ----

namespace {

// The slope along `dim`: inside, that of the parabola through three adjacent samples; at the ends,
// that of the line through two samples, or, if `edge_order` is 2, of the parabola through three.
// `even`: all widths are the same.
Tensor slope_along(const Tensor& y, int64_t dim, const Tensor& widths, bool even,
                   int64_t edge_order) {
  int64_t n = y.size(dim);
  auto part = [&](const Tensor& t, int64_t from, int64_t size) {
    return t.narrow(dim, from, size);
  };
  Tensor left = part(widths, 0, n - 2), right = part(widths, 1, n - 2);
  Tensor inside;
  if (even) {
    // This formula does not read the middle sample, which may be infinite.
    inside = (part(y, 2, n - 2) - part(y, 0, n - 2)) / (left * 2);
  } else {
    inside = (part(y, 2, n - 2) * left * left - part(y, 0, n - 2) * right * right +
              part(y, 1, n - 2) * (right * right - left * left)) /
             (left * right * (left + right));
  }
  auto first = [&](int64_t at) { return part(y, at, 1); };
  Tensor begin, end;
  if (edge_order == 1) {
    begin = (first(1) - first(0)) / part(widths, 0, 1);
    end = (first(n - 1) - first(n - 2)) / part(widths, n - 2, 1);
  } else {
    Tensor h = part(widths, 0, 1), k = part(widths, 1, 1);
    begin = first(1) * ((h + k) / (h * k)) - first(0) * ((h * 2 + k) / (h * (h + k))) -
            first(2) * (h / (k * (h + k)));
    h = part(widths, n - 2, 1), k = part(widths, n - 3, 1);
    end = first(n - 1) * ((h * 2 + k) / (h * (h + k))) - first(n - 2) * ((h + k) / (h * k)) +
          first(n - 3) * (h / (k * (h + k)));
  }
  return lamella::cat({begin, inside, end}, dim);
}

// spacing[i] is the distance between samples along dims[i], or their coordinates.
std::vector<Tensor> slopes(const Tensor& self, IntArrayRef dims, int64_t edge_order,
                           const std::vector<Tensor>& spacing) {
  LAMELLA_CHECK(edge_order == 1 || edge_order == 2,
                "gradient: expected 'edge_order' to be 1 or 2, got ", edge_order);
  DimSet distinct("gradient", "dim", dims, self.dim());
  LAMELLA_CHECK(spacing.size() == dims.size(), "gradient: expected 'spacing' to have ", dims.size(),
                " entries, one for each dimension, got ", spacing.size());
  std::vector<Tensor> result;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t dim = maybe_wrap_dim(dims[i], self.dim(), "gradient");
    int64_t n = self.size(dim);
    LAMELLA_CHECK(n > edge_order, "gradient: expected 'self' to have at least ", edge_order + 1,
                  " elements along dimension ", dim, ", got shape ", self.sizes());
    Dims line(static_cast<size_t>(self.dim()), 1);
    line[static_cast<size_t>(dim)] = n - 1;
    Tensor widths = spacing[i];
    bool even = widths.dim() != 1;
    if (!even) {
      LAMELLA_CHECK(widths.numel() == n, "gradient: expected 'spacing' to have ", n,
                    " places along dimension ", dim, ", got ", widths.numel());
      widths = (widths.narrow(0, 1, n - 1) - widths.narrow(0, 0, n - 1)).reshape(line);
    } else {
      widths = widths.expand(line);
    }
    result.push_back(slope_along(self, dim, widths, even, edge_order));
  }
  return result;
}
std::vector<int64_t> chosen_dims(const Tensor& self, MaybeDim dim) {
  if (dim.has_value()) return {*dim};
  std::vector<int64_t> all;
  for (int64_t d = 0; d < self.dim(); ++d) all.push_back(d);
  return all;
}
std::vector<Tensor> as_tensors(const Tensor& self, ArrayRef<Scalar> numbers) {
  ScalarType type =
      is_integral(self.dtype(), true) ? get_default_dtype() : to_real_type(self.dtype());
  std::vector<Tensor> result;
  for (const Scalar& number : numbers) {
    ScalarType own = number.isComplex() ? to_complex_type(type) : type;
    result.push_back(lamella::full({}, number, own, std::nullopt, self.device(), std::nullopt));
  }
  return result;
}
std::vector<Tensor> alike(const Tensor& self, const Scalar& spacing, size_t count) {
  return as_tensors(self, std::vector<Scalar>(count, spacing));
}

}  // namespace

std::vector<Tensor> gradient(const Tensor& self, const std::optional<Scalar>& spacing, MaybeDim dim,
                             int64_t edge_order) {
  std::vector<int64_t> dims = chosen_dims(self, dim);
  return slopes(self, dims, edge_order, alike(self, spacing.value_or(1), dims.size()));
}
std::vector<Tensor> gradient(const Tensor& self, const Scalar& spacing, IntArrayRef dim,
                             int64_t edge_order) {
  return slopes(self, dim, edge_order, alike(self, spacing, dim.size()));
}
std::vector<Tensor> gradient(const Tensor& self, IntArrayRef dim, int64_t edge_order) {
  return slopes(self, dim, edge_order, alike(self, 1, dim.size()));
}
std::vector<Tensor> gradient(const Tensor& self, ArrayRef<Scalar> spacing, MaybeDim dim,
                             int64_t edge_order) {
  return slopes(self, chosen_dims(self, dim), edge_order, as_tensors(self, spacing));
}
std::vector<Tensor> gradient(const Tensor& self, ArrayRef<Scalar> spacing, IntArrayRef dim,
                             int64_t edge_order) {
  return slopes(self, dim, edge_order, as_tensors(self, spacing));
}
std::vector<Tensor> gradient(const Tensor& self, TensorList spacing, MaybeDim dim,
                             int64_t edge_order) {
  std::vector<Tensor> places(spacing.begin(), spacing.end());
  return slopes(self, chosen_dims(self, dim), edge_order, places);
}
std::vector<Tensor> gradient(const Tensor& self, TensorList spacing, IntArrayRef dim,
                             int64_t edge_order) {
  std::vector<Tensor> places(spacing.begin(), spacing.end());
  return slopes(self, dim, edge_order, places);
}

// ---- Random numbers ----

namespace {
// Numbers are drawn in the order of the indices, whatever the strides of the arguments are.
Tensor contiguous_like(const Tensor& self) {
  return lamella::empty_like(self, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                             MemoryFormat::Contiguous);
}
}  // namespace
Tensor normal(const Tensor& mean, double std, MaybeGenerator generator) {
  LAMELLA_CHECK(std >= 0, "normal: expected 'std' of at least 0, got ", std);
  return contiguous_like(mean).normal_(0, std, generator).add_(mean);
}
namespace {
void check_deviations(const Tensor& std) {
  if (std.is_meta() || std.numel() == 0 || std.is_complex()) return;
  double least = std.min().item().toDouble();
  LAMELLA_CHECK(least >= 0, "normal: expected every number of 'std' to be at least 0, got ", least);
}
}  // namespace
Tensor normal(double mean, const Tensor& std, MaybeGenerator generator) {
  check_deviations(std);
  return contiguous_like(std).normal_(0, 1, generator).mul_(std).add_(mean);
}
Tensor normal(const Tensor& mean, const Tensor& std, MaybeGenerator generator) {
  check_deviations(std);
  std::vector<Tensor> both = lamella::broadcast_tensors({mean, std});
  return contiguous_like(both[0]).normal_(0, 1, generator).mul_(both[1]).add_(both[0]);
}
Tensor normal(double mean, double std, IntArrayRef size, MaybeGenerator generator,
              std::optional<ScalarType> dtype, std::optional<Layout> layout,
              std::optional<Device> device, std::optional<bool> pin_memory) {
  return lamella::empty(size, dtype, layout, device, pin_memory, std::nullopt)
      .normal_(mean, std, generator);
}

}  // namespace lamella::native
