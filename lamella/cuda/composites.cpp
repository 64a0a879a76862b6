// Operators of the device that are compositions of others which have kernels there.
#include <algorithm>
#include <cmath>

#include "lamella/cuda/families.h"

namespace lamella::cuda {
namespace {

constexpr ScalarType kLong = ScalarType::Long, kDouble = ScalarType::Double;
const Device kMeta(DeviceType::Meta);

Tensor numbers_below(int64_t n, const Tensor& like) {
  return lamella::arange(n, like.options().dtype(kLong));
}

// ---- Places ----

// Row r has the columns that start at `first` and end before `end`, each limited to the matrix.
Tensor triangle(Tensor shape, int64_t rows, int64_t columns, int64_t diagonal, bool lower,
                ScalarType dtype, Device device) {
  const int64_t count = shape.size(1);
  Tensor result = lamella::empty({2, count}, TensorOptions(dtype).device(device));
  if (count == 0) return result;
  diagonal = std::clamp(diagonal, -rows, columns);
  const Tensor row = lamella::arange(rows, TensorOptions(kLong).device(device));
  const Tensor edge = row.add(diagonal + (lower ? 1 : 0)).clamp(0, columns);
  const Tensor ends = (lower ? edge : edge.neg().add(columns)).cumsum(0, std::nullopt);
  const Tensor at = numbers_below(count, row);
  const Tensor in = lamella::searchsorted(ends, at, false, true, std::nullopt, std::nullopt);
  // The last column of a row is that of its last place.
  const Tensor last = lower ? edge : lamella::full_like(edge, columns);
  const Tensor column = at.add(last.sub(ends).index_select(0, in));
  result.select(0, 0).copy_(in);
  result.select(0, 1).copy_(column);
  return result;
}
#define LAMELLA_TRIANGLE(op, lower)                                                            \
  Tensor op(int64_t row, int64_t col, int64_t offset, std::optional<ScalarType> dtype,         \
            std::optional<Layout> layout, std::optional<Device> device,                        \
            std::optional<bool> pin_memory) {                                                  \
    return triangle(lamella::op(row, col, offset, dtype, layout, kMeta, pin_memory), row, col, \
                    offset, lower, dtype.value_or(kLong), *device);                            \
  }
LAMELLA_TRIANGLE(tril_indices, true)
LAMELLA_TRIANGLE(triu_indices, false)

Tensor& logspace(const Scalar& start, const Scalar& end, int64_t steps, double base, Tensor& out) {
  const ScalarType dtype = out.scalar_type();
  if (steps <= 0 || is_complex(dtype) || dtype == ScalarType::Bool) {
    return counted_fallback<lamella::ops::logspace_out>(start, end, steps, base, out);
  }
  if (out.numel() != steps) out.resize_({steps});
  // Ends are converted to the dtype first.
  const Scalar first = lamella::scalar_tensor(start, dtype).item();
  const Scalar last = lamella::scalar_tensor(end, dtype).item();
  const ScalarType type =
      is_integral(dtype, true) || dtype == kDouble ? kDouble : ScalarType::Float;
  const Tensor at = lamella::linspace(first.toDouble(), last.toDouble(), steps,
                                      TensorOptions(type).device(out.device()));
  return out.copy_(lamella::pow(Scalar(base), at).reshape(out.sizes()));
}
Tensor& fill(Tensor& self, const Tensor& value) {
  const bool converts = value.is_complex() && !self.is_complex();
  if (value.dim() != 0 || converts || value.device() != self.device()) {
    return counted_fallback<lamella::ops::fill__Tensor>(self, value);
  }
  return self.copy_(value);
}

// ---- Counts ----

Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  const bool is_real = self.is_floating_point() || is_integral(self.scalar_type(), false);
  double low = min.toDouble(), high = max.toDouble();
  if (is_real && bins > 0 && self.numel() != 0 && low == high) {
    const auto [least, most] = lamella::aminmax(self.to(kDouble), std::nullopt, false);
    const Tensor ends = lamella::stack({least, most}, 0).cpu();
    low = ends[0].item().toDouble();
    high = ends[1].item().toDouble();
    if (low == high) {
      low -= 1;
      high += 1;
    }
  }
  const bool is_served = is_real && bins > 0 && std::isfinite(low) && std::isfinite(high) &&
                         low < high && self.numel() != 0;
  if (!is_served) return counted_fallback<lamella::ops::histc>(self, bins, min, max);
  const Tensor values = self.to(kDouble).reshape({-1});
  const double scale = std::isfinite(high - low) ? 1 : 0.5;  // the difference may overflow
  const double width = high * scale - low * scale;
  const Tensor inside = values.ge(low).logical_and(values.le(high));
  const Tensor places =
      values.mul(scale).sub(low * scale).div(width).mul(static_cast<double>(bins));
  // What is outside of the range is counted behind the bins.
  const Tensor at = lamella::where(inside, places, Scalar(0.0)).to(kLong).clamp_max(bins - 1);
  Tensor counts = lamella::zeros({bins + 1}, at.options());
  counts.index_add_(0, at.masked_fill(inside.logical_not(), bins), lamella::ones_like(at));
  return counts.narrow(0, 0, bins).to(self.scalar_type());
}

// ---- Random choices ----

// Without replacement, or with one draw, these are the numbers of PyTorch on a device.
Tensor multinomial(const Tensor& self, int64_t samples, bool replacement,
                   std::optional<Generator> generator) {
  const int64_t count = self.dim() == 0 ? 0 : self.size(-1);
  bool is_served = (self.dim() == 1 || self.dim() == 2) && self.is_floating_point() &&
                   self.numel() != 0 && samples > 0 && (replacement || samples <= count) &&
                   count <= int64_t{1} << 24;
  if (is_served) {
    const Tensor sums =
        self.sum(-1, false, self.scalar_type() == kDouble ? kDouble : ScalarType::Float);
    const Tensor right =
        self.ge(0).all().logical_and(sums.gt(0).logical_and(sums.isfinite()).all());
    is_served = right.item().toBool();
  }
  if (!is_served) {  // the CPU says what is expected
    return counted_fallback<lamella::ops::multinomial>(self, samples, replacement, generator);
  }
  if (!replacement || samples == 1) {
    const Tensor waits = lamella::empty_like(self).exponential_(1, generator);
    const Tensor order = lamella::where(self.gt(0), self.div(waits), Scalar(0));
    if (samples == 1) return lamella::argmax(order, -1, true);
    return std::get<1>(lamella::topk(order, samples, -1, true, true));
  }
  // The first category whose sum of weights exceeds a part of the total. Rounding may give the
  // total itself, for which the last category with a weight is right.
  const Tensor ends = self.to(kDouble).cumsum(-1, std::nullopt);
  std::vector<int64_t> sizes(self.sizes().begin(), self.sizes().end());
  sizes.back() = samples;
  const Tensor total = ends.narrow(-1, count - 1, 1);
  const Tensor drawn = lamella::empty(sizes, ends.options()).uniform_(0, 1, generator).mul(total);
  const Tensor last = lamella::searchsorted(ends, total, false, false, std::nullopt, std::nullopt);
  return lamella::searchsorted(ends, drawn, false, true, std::nullopt, std::nullopt).minimum(last);
}

// ---- Complex numbers ----

Tensor angle(const Tensor& self) {
  if (self.is_complex()) {
    const Tensor parts = lamella::view_as_real(self.resolve_conj());
    return lamella::atan2(parts.select(-1, 1), parts.select(-1, 0));
  }
  const ScalarType dtype = lamella::result_type(self, Scalar(1.0));
  const Tensor x = self.to(dtype);
  const Tensor turned = x.lt(0).to(dtype).mul(3.14159265358979323846);
  return lamella::where(x.isnan(), x, turned);
}
Tensor polar(const Tensor& abs, const Tensor& angle) {
  const bool is_served = (abs.scalar_type() == ScalarType::Float || abs.scalar_type() == kDouble) &&
                         abs.scalar_type() == angle.scalar_type() && abs.device() == angle.device();
  if (!is_served) return counted_fallback<lamella::ops::polar>(abs, angle);
  return lamella::view_as_complex(lamella::stack({abs.mul(angle.cos()), abs.mul(angle.sin())}, -1));
}

}  // namespace

// Runs the CPU's kernel, which calls operators alone.
lamella_status run_composite(const lamella_kernel*, const lamella_operator* op, uint64_t,
                             const lamella_value* arguments, lamella_value* returns) noexcept {
  return call_kernel_of_cpu(op, arguments, returns);
}

void register_composites(Library& aten) {
  for (const char* name : {"unique_dim", "unique_dim_consecutive", "equal", "nonzero_static"}) {
    aten.impl(name, CppFunction::makeFromBoxedKernel(&run_composite));
  }
  aten.impl("tril_indices", LAMELLA_FN(&tril_indices));
  aten.impl("triu_indices", LAMELLA_FN(&triu_indices));
  aten.impl("logspace.out", LAMELLA_FN(&logspace));
  aten.impl("fill_.Tensor", LAMELLA_FN(&fill));
  aten.impl("histc", LAMELLA_FN(&histc));
  aten.impl("multinomial", LAMELLA_FN(&multinomial));
  aten.impl("angle", LAMELLA_FN(&angle));
  aten.impl("polar", LAMELLA_FN(&polar));
}

}  // namespace lamella::cuda
