// Histograms, and operators on the bits, positions and layouts of elements.
#include <cmath>
#include <limits>

#include "lamella/kernels/families/families.h"
#include "lamella/kernels/families/special/blocks.h"

namespace aten::native {
namespace {

// The bin of each element; `bins` for elements outside all bins. The last bin includes its upper
// edge.
Tensor bins_of(const Tensor& x, const Tensor& edges) {
  const int64_t bins = edges.size(0) - 1;
  const Tensor place =
      lamella::searchsorted(edges.contiguous(), x.contiguous(), false, true).sub(1);
  const Tensor inside = x.ge(edges.select(0, 0)).logical_and(x.le(edges.select(0, bins)));
  return lamella::where(inside, place.clamp(0, bins - 1), bins);
}

std::pair<double, double> range_of(const char* op, const Tensor& x, const ArrayRef<double>* range,
                                   int64_t which) {
  double low = 0, high = 1;
  if (range != nullptr) {
    const auto at = static_cast<size_t>(2 * which);
    LAMELLA_CHECK(range->size() >= at + 2, op, ": expected 'range' to have ", at + 2,
                  " numbers, got ", range->size());
    low = (*range)[at], high = (*range)[at + 1];
  } else if (x.numel() > 0) {
    low = x.min().item().toDouble(), high = x.max().item().toDouble();
  }
  LAMELLA_CHECK(std::isfinite(low) && std::isfinite(high), op, ": expected a finite range, got [",
                low, ", ", high, "]");
  LAMELLA_CHECK(low <= high, op, ": expected the range to ascend, got [", low, ", ", high, "]");
  if (low == high) {
    low -= 0.5;
    high += 0.5;
  }
  return {low, high};
}

// The histogram of the rows of x, [count, dims], which are points; `edges` has one tensor for each
// dimension.
Tensor counted(const char* op, const Tensor& x, const std::vector<Tensor>& edges,
               const std::optional<Tensor>& weight, bool density) {
  const bool weighted = weight.has_value() && weight->defined();
  LAMELLA_CHECK(!weighted || weight->numel() == x.size(0), op, ": expected 'weight' to have ",
                x.size(0), " elements, got ", weighted ? weight->numel() : 0);
  Dims shape;
  Tensor place = lamella::zeros({x.size(0)}, x.options().dtype(kLong));
  Tensor inside = lamella::ones({x.size(0)}, x.options().dtype(kBool));
  int64_t cells = 1;
  for (size_t d = 0; d < edges.size(); ++d) {
    const int64_t bins = edges[d].size(0) - 1;
    LAMELLA_CHECK(edges[d].dim() == 1 && bins >= 1, op,
                  ": expected edges of at least one bin, got ", edges[d].sizes());
    const Tensor bin = bins_of(x.select(1, static_cast<int64_t>(d)), edges[d]);
    inside = inside.logical_and(bin.lt(bins));
    place = place.mul(bins).add(bin);
    shape.push_back(bins);
    cells *= bins;
  }
  place = lamella::where(inside, place, cells);
  const Tensor ones = weighted ? weight->reshape({-1}).to(x.scalar_type())
                               : lamella::ones({x.size(0)}, x.options());
  Tensor result = lamella::zeros({cells + 1}, x.options())
                      .index_add(0, place, ones)
                      .narrow(0, 0, cells)
                      .reshape(shape);
  if (!density) return result.contiguous();
  result = result.div(result.sum());
  for (size_t d = 0; d < edges.size(); ++d) {
    Dims line(edges.size(), 1);
    line[d] = shape[d];
    result = result.div(edges[d].diff().reshape(line));
  }
  return result;
}

std::tuple<Tensor, std::vector<Tensor>> histogram_of(const char* op, const Tensor& self,
                                                     const std::vector<Tensor>& edges,
                                                     const std::optional<Tensor>& weight,
                                                     bool density) {
  const Tensor points = self.reshape({-1, self.size(-1)});
  LAMELLA_CHECK(static_cast<size_t>(points.size(1)) == edges.size(), op,
                ": expected bins for each of ", points.size(1), " dimensions, got ", edges.size());
  return {counted(op, points, edges, weight, density), edges};
}
std::vector<Tensor> even_edges(const char* op, const Tensor& points, IntArrayRef bins,
                               const ArrayRef<double>* range) {
  LAMELLA_CHECK(static_cast<size_t>(points.size(1)) == bins.size(), op,
                ": expected 'bins' to have ", points.size(1), " entries, got ", bins.size());
  std::vector<Tensor> edges;
  for (size_t d = 0; d < bins.size(); ++d) {
    LAMELLA_CHECK(bins[d] >= 1, op, ": expected at least one bin, got ", bins[d]);
    const auto [low, high] =
        range_of(op, points.select(1, static_cast<int64_t>(d)), range, static_cast<int64_t>(d));
    edges.push_back(lamella::linspace(low, high, bins[d] + 1, points.options()));
  }
  return edges;
}
void check_floating(const char* op, const Tensor& self) {
  LAMELLA_CHECK_TYPE(self.scalar_type() == kFloat || self.scalar_type() == kDouble, op,
                     ": expected 'self' to be float32 or float64, got ", self.scalar_type());
}

}  // namespace

std::tuple<Tensor, Tensor> histogram(const Tensor& self, const Tensor& bins,
                                     const std::optional<Tensor>& weight, bool density) {
  check_floating("histogram", self);
  const Tensor points = self.reshape({-1, 1});
  return {counted("histogram", points, {bins}, weight, density), bins.clone()};
}
std::tuple<Tensor, Tensor> histogram(const Tensor& self, int64_t bins,
                                     std::optional<ArrayRef<double>> range,
                                     const std::optional<Tensor>& weight, bool density) {
  check_floating("histogram", self);
  const Tensor points = self.reshape({-1, 1});
  const auto edges =
      even_edges("histogram", points, IntArrayRef(&bins, 1), range ? &*range : nullptr);
  return {counted("histogram", points, edges, weight, density), edges[0]};
}
std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, IntArrayRef bins,
                                                    std::optional<ArrayRef<double>> range,
                                                    const std::optional<Tensor>& weight,
                                                    bool density) {
  const char* op = "histogramdd";
  check_floating(op, self);
  LAMELLA_CHECK(self.dim() >= 2, op, ": expected 'self' to have at least 2 dimensions, got ",
                self.sizes());
  const Tensor points = self.reshape({-1, self.size(-1)});
  return histogram_of(op, self, even_edges(op, points, bins, range ? &*range : nullptr), weight,
                      density);
}
std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, int64_t bins,
                                                    std::optional<ArrayRef<double>> range,
                                                    const std::optional<Tensor>& weight,
                                                    bool density) {
  LAMELLA_CHECK(self.dim() >= 2, "histogramdd: expected 'self' to have at least 2 dimensions, got ",
                self.sizes());
  const Dims all(static_cast<size_t>(self.size(-1)), bins);
  return aten::histogramdd(self, all, range, weight, density);
}
std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, TensorList bins,
                                                    std::optional<ArrayRef<double>> range,
                                                    const std::optional<Tensor>& weight,
                                                    bool density) {
  (void)range;
  check_floating("histogramdd", self);
  LAMELLA_CHECK(self.dim() >= 2, "histogramdd: expected 'self' to have at least 2 dimensions, got ",
                self.sizes());
  return histogram_of("histogramdd", self, std::vector<Tensor>(bins.begin(), bins.end()), weight,
                      density);
}

// ---- Places and layouts ----

Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value) {
  LAMELLA_CHECK(size >= 0, "nonzero_static: expected 'size' not to be negative, got ", size);
  if (self.is_meta()) return lamella::empty({size, self.dim()}, self.options().dtype(kLong));
  const Tensor found = lamella::nonzero(self);
  const int64_t count = found.size(0);
  if (count >= size) return found.narrow(0, 0, size).contiguous();
  return lamella::constant_pad_nd(found, {0, 0, 0, size - count}, fill_value);
}

Tensor empty_permuted(IntArrayRef size, IntArrayRef physical_layout,
                      std::optional<ScalarType> dtype, std::optional<Layout> layout,
                      std::optional<Device> device, std::optional<bool> pin_memory) {
  const char* op = "empty_permuted";
  LAMELLA_CHECK(physical_layout.size() == size.size(), op, ": expected 'physical_layout' to have ",
                size.size(), " entries, got ", physical_layout.size());
  Dims inner, back(size.size(), -1);
  for (size_t i = 0; i < size.size(); ++i) {
    const int64_t d = physical_layout[i];
    LAMELLA_CHECK(
        d >= 0 && static_cast<size_t>(d) < size.size() && back[static_cast<size_t>(d)] < 0, op,
        ": expected 'physical_layout' to be a permutation, got ", physical_layout);
    inner.push_back(size[static_cast<size_t>(d)]);
    back[static_cast<size_t>(d)] = static_cast<int64_t>(i);
  }
  return lamella::empty(inner, dtype, layout, device, pin_memory, std::nullopt).permute(back);
}

Tensor _chunk_cat(TensorList tensors, int64_t dim, int64_t num_chunks) {
  const char* op = "_chunk_cat";
  LAMELLA_CHECK(!tensors.empty(), op, ": expected at least one tensor, got none");
  LAMELLA_CHECK(num_chunks >= 1, op, ": expected 'num_chunks' to be positive, got ", num_chunks);
  const int64_t at = wrapped(op, dim, tensors[0].dim());
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) {
    LAMELLA_CHECK(t.dim() > at, op, ": expected tensors of more than ", at, " dimensions, got ",
                  t.sizes());
    LAMELLA_CHECK(t.numel() > 0, op, ": expected tensors with elements, got one of ", t.sizes());
    const int64_t rest = t.size(at) % num_chunks;
    Tensor whole = t;
    if (rest != 0) {
      Dims pad(static_cast<size_t>(2 * (t.dim() - at)), 0);
      pad.back() = num_chunks - rest;
      whole = lamella::constant_pad_nd(t, pad, 0);
    }
    Dims shape(t.sizes().begin(), t.sizes().begin() + at);
    shape.insert(shape.end(), {num_chunks, -1});
    parts.push_back(whole.reshape(shape));
  }
  return lamella::cat(parts, at + 1);
}

namespace {
std::vector<Tensor> within(const Tensor& self, TensorList indices) {
  std::vector<Tensor> result;
  for (size_t d = 0; d < indices.size(); ++d) {
    const Tensor& index = indices[d];
    result.push_back(index.defined() ? index.clamp(-self.size(static_cast<int64_t>(d)),
                                                   self.size(static_cast<int64_t>(d)) - 1)
                                     : index);
  }
  return result;
}
}  // namespace

Tensor _unsafe_masked_index(const Tensor& self, const Tensor& mask, TensorList indices,
                            const Scalar& fill) {
  if (self.numel() == 0) {
    const Tensor flat = lamella::full({1}, fill, self.options());
    return flat.expand(mask.sizes());
  }
  const Tensor result = lamella::index(self, within(self, indices));
  return result.masked_fill(mask.logical_not(), fill);
}
Tensor _unsafe_masked_index_put_accumulate(const Tensor& self, const Tensor& mask,
                                           TensorList indices, const Tensor& values) {
  if (self.numel() == 0) return self.clone();
  return lamella::index_put(self, within(self, indices), values.masked_fill(mask.logical_not(), 0),
                            true);
}

// ---- Bits ----

std::tuple<Tensor, Tensor> frexp(const Tensor& self) {
  LAMELLA_CHECK_TYPE(self.is_floating_point(), "frexp: expected 'self' to be floating point, got ",
                     self.scalar_type());
  const auto whole = self.options().dtype(kInt);
  if (self.is_meta()) {
    return {lamella::empty_like(self), lamella::empty_like(self, whole)};
  }
  const bool is_double = self.scalar_type() == kDouble;
  const Tensor given = self.to(is_double ? kDouble : kFloat);
  const Tensor from = given.is_non_overlapping_and_dense() ? given : given.contiguous();
  Tensor mantissa = lamella::empty_like(from), exponent = lamella::empty_like(from, whole);
  const auto& blocks = lamella::special::blocks();
  auto* powers = exponent.mutable_data_ptr<int32_t>();
  auto run = [&](auto* split, const auto* numbers, auto* parts) {
    in_parallel(from.numel(), 1 << 15, [&](int64_t begin, int64_t end) {
      split(numbers + begin, parts + begin, powers + begin, end - begin);
    });
  };
  if (is_double) {
    run(blocks.split_doubles, from.const_data_ptr<double>(), mantissa.mutable_data_ptr<double>());
  } else {
    run(blocks.split_floats, from.const_data_ptr<float>(), mantissa.mutable_data_ptr<float>());
  }
  return {mantissa.to(self.scalar_type()), exponent};
}

}  // namespace aten::native
