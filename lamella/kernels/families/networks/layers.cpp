// Layers of neural networks made of operators: bags of embeddings, the reverse of max pooling,
// pooling over random windows, bilinear forms, a softmax of rows that may be all -inf.
#include <algorithm>
#include <limits>

#include "lamella/kernels/by_capability.h"
#include "lamella/kernels/families/families.h"
#include "lamella/kernels/families/networks/bags.h"

namespace lamella::networks {
#if defined(__x86_64__)
namespace AVX2 {
template <class T>
void sum_bags(const Bags<T>& of, int64_t begin, int64_t end);
}  // namespace AVX2
namespace AVX512 {
template <class T>
void sum_bags(const Bags<T>& of, int64_t begin, int64_t end);
}  // namespace AVX512
#endif
namespace DEFAULT {
template <class T>
void sum_bags(const Bags<T>& of, int64_t begin, int64_t end);
}  // namespace DEFAULT

namespace {
template <class T>
void sum_on_cpu(const Bags<T>& of, int64_t begin, int64_t end) {
  LAMELLA_RETURN_BY_CAPABILITY("embedding_bag", sum_bags(of, begin, end));
}
}  // namespace
}  // namespace lamella::networks

namespace aten::native {

namespace {
// The sums of bags, or an undefined tensor where `starts` or `indices` are not as they should be.
// Fills `bag` with the bag of each index, and `sizes` with the indices that count in each.
template <class T>
Tensor bag_sums(const Tensor& weight, const Tensor& indices, const Tensor& starts,
                const Tensor& factors, int64_t padding_idx, const Tensor& bag,
                const Tensor& sizes) {
  const int64_t count = indices.numel(), bags = starts.numel(), rows = weight.size(0);
  const auto* index = indices.const_data_ptr<int64_t>();
  Dims bounds(starts.const_data_ptr<int64_t>(), starts.const_data_ptr<int64_t>() + bags);
  bounds.push_back(count);
  uint64_t most = 0;  // the greatest index, as which a negative one counts as well
  for (int64_t i = 0; i < count; ++i) most = std::max(most, static_cast<uint64_t>(index[i]));
  if (bounds[0] != 0 || !std::is_sorted(bounds.begin(), bounds.end()) ||
      (count > 0 && most >= static_cast<uint64_t>(rows))) {
    return Tensor();
  }
  auto* bag_of = bag.mutable_data_ptr<int64_t>();
  for (int64_t b = 0; b < bags; ++b) {
    const auto begin = bounds[static_cast<size_t>(b)], end = bounds[static_cast<size_t>(b) + 1];
    std::fill(bag_of + begin, bag_of + end, b);
    const auto skipped = padding_idx < 0 ? 0 : std::count(index + begin, index + end, padding_idx);
    sizes.mutable_data_ptr<int64_t>()[b] = end - begin - skipped;
  }
  const Tensor out = lamella::empty({bags, weight.size(1)}, weight.options());
  const lamella::networks::Bags<T> of = {weight.const_data_ptr<T>(),
                                         index,
                                         bounds.data(),
                                         factors.defined() ? factors.const_data_ptr<T>() : nullptr,
                                         out.mutable_data_ptr<T>(),
                                         weight.size(1),
                                         padding_idx};
  in_parallel(bags, 1 + 32768 * bags / (1 + count * weight.size(1)),
              [&](int64_t begin, int64_t end) { lamella::networks::sum_on_cpu(of, begin, end); });
  return out;
}
}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> _embedding_bag(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
    int64_t mode, bool sparse, const std::optional<Tensor>& per_sample_weights,
    bool include_last_offset, int64_t padding_idx) {
  const char* op = "embedding_bag";
  const bool weighted = per_sample_weights.has_value() && per_sample_weights->defined();
  LAMELLA_CHECK(weight.dim() == 2 && indices.dim() == 1 && offsets.dim() == 1, op,
                ": expected 'weight' to be a matrix, 'indices' and 'offsets' vectors, got ",
                weight.sizes(), ", ", indices.sizes(), " and ", offsets.sizes());
  LAMELLA_CHECK(mode >= 0 && mode <= 2, op, ": expected 'mode' to be 0, 1 or 2, got ", mode);
  LAMELLA_CHECK(!weighted || mode == 0, op,
                ": expected 'per_sample_weights' only with 'mode' 0 (sum), got 'mode' ", mode);
  LAMELLA_CHECK(!weighted || per_sample_weights->sizes() == indices.sizes(), op,
                ": expected 'per_sample_weights' to have the shape ", indices.sizes(), ", got ",
                weighted ? per_sample_weights->sizes() : IntArrayRef());
  const int64_t bags = offsets.size(0) - (include_last_offset ? 1 : 0), count = indices.size(0);
  LAMELLA_CHECK(bags >= 0, op, ": expected 'offsets' not to be empty, got ", offsets.sizes());
  const Tensor starts = offsets.narrow(0, 0, bags).to(kLong);
  const auto whole = starts.options();
  const ScalarType type = weight.scalar_type();
  if (mode != 2 && bags > 0 && (type == kFloat || type == kDouble) && is_plain(weight) &&
      is_plain(indices) && is_plain(offsets) && is_integral(indices.scalar_type(), false) &&
      (!weighted || (is_plain(*per_sample_weights) && per_sample_weights->scalar_type() == type))) {
    const Tensor bag = lamella::empty({count}, whole), sizes = lamella::empty({bags}, whole);
    Tensor sums =
        (type == kFloat ? bag_sums<float>
                        : bag_sums<double>)(weight.contiguous(), indices.to(kLong).contiguous(),
                                            starts.contiguous(),
                                            weighted ? per_sample_weights->contiguous() : Tensor(),
                                            padding_idx, bag, sizes);
    if (sums.defined()) {
      if (mode == 1) sums = sums.div(sizes.clamp_min(1).unsqueeze(1).to(type));
      return {sums, bag, sizes, lamella::zeros({bags}, whole)};
    }
  }
  const Tensor rows = lamella::embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse);
  const Tensor counts = indices.ne(padding_idx);
  // The bag of a position is the last one that starts at or before it.
  const Tensor bag =
      bags == 0 ? lamella::zeros({count}, whole)
                : lamella::searchsorted(starts, lamella::arange(count, whole), false, true).sub(1);
  const Tensor sizes = lamella::zeros({bags}, whole).index_add(0, bag, counts.to(kLong));
  const Tensor empty = lamella::zeros({bags, weight.size(1)}, rows.options());
  Tensor result;
  if (mode == 2) {
    const Tensor low =
        lamella::where(counts.unsqueeze(1), rows, -std::numeric_limits<double>::infinity());
    const Tensor at = bag.unsqueeze(1).expand(rows.sizes());
    result = empty.scatter_reduce(0, at, low, "amax", false);
    result = lamella::where(sizes.unsqueeze(1).eq(0), 0, result);
  } else {
    // Rows that do not count may be NaN or infinite, and so may their weights.
    const bool pads = padding_idx >= 0;
    Tensor parts = pads ? lamella::where(counts.unsqueeze(1), rows, 0) : rows;
    if (weighted) {
      const Tensor& factors = *per_sample_weights;
      parts = parts.mul((pads ? lamella::where(counts, factors, 0) : factors).unsqueeze(1));
    }
    result = empty.index_add(0, bag, parts);
    if (mode == 1) result = result.div(sizes.clamp_min(1).unsqueeze(1).to(rows.scalar_type()));
  }
  return {result, bag, sizes, lamella::zeros({bags}, whole)};
}
std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
    int64_t mode, bool sparse, const std::optional<Tensor>& per_sample_weights,
    bool include_last_offset) {
  return aten::_embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                              per_sample_weights, include_last_offset, -1);
}
std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
    int64_t mode, bool sparse, const std::optional<Tensor>& per_sample_weights,
    bool include_last_offset, std::optional<int64_t> padding_idx) {
  int64_t padding = padding_idx.value_or(-1);
  if (padding_idx.has_value()) {
    LAMELLA_CHECK(padding >= -weight.size(0) && padding < weight.size(0),
                  "embedding_bag: expected 'padding_idx' to be in [", -weight.size(0), ", ",
                  weight.size(0) - 1, "], got ", padding);
    if (padding < 0) padding += weight.size(0);
  }
  return aten::_embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                              per_sample_weights, include_last_offset, padding);
}

// ---- The reverse of max pooling ----

namespace {
Tensor unpooled(const char* op, const Tensor& self, const Tensor& indices, IntArrayRef output_size,
                int64_t ndim) {
  LAMELLA_CHECK(output_size.size() == static_cast<size_t>(ndim), op,
                ": expected 'output_size' to have ", ndim, " entries, got ", output_size.size());
  LAMELLA_CHECK_TYPE(indices.scalar_type() == kLong, op, ": expected 'indices' to be int64, got ",
                     indices.scalar_type());
  LAMELLA_CHECK(self.dim() == ndim + 1 || self.dim() == ndim + 2, op, ": expected 'self' to have ",
                ndim + 1, " or ", ndim + 2, " dimensions, got ", self.sizes());
  LAMELLA_CHECK(indices.sizes() == self.sizes(), op, ": expected 'indices' to have the shape ",
                self.sizes(), ", got ", indices.sizes());
  Dims lines(self.sizes().begin(), self.sizes().end() - ndim), shape = lines;
  int64_t points = 1;
  for (int64_t n : output_size) {
    points *= n;
    shape.push_back(n);
  }
  lines.push_back(points);
  return lamella::zeros(lines, self.options())
      .scatter(-1, indices.flatten(-ndim), self.flatten(-ndim))
      .reshape(shape);
}
}  // namespace

Tensor max_unpool2d(const Tensor& self, const Tensor& indices, IntArrayRef output_size) {
  return unpooled("max_unpool2d", self, indices, output_size, 2);
}
Tensor max_unpool3d(const Tensor& self, const Tensor& indices, IntArrayRef output_size,
                    IntArrayRef stride, IntArrayRef padding) {
  (void)stride, (void)padding;
  return unpooled("max_unpool3d", self, indices, output_size, 3);
}

// ---- Pooling over random windows (B. Graham, Fractional max-pooling, 2014) ----

// The index of the largest element of each window, counted over all spatial dimensions.
Tensor fractional_pool_places(const Tensor& self, IntArrayRef kernel_size, IntArrayRef output_size,
                              const Tensor& random_samples) {
  const char* op = "fractional_max_pool";
  const auto ndim = static_cast<int64_t>(kernel_size.size());
  const bool batched = self.dim() == ndim + 2;
  LAMELLA_CHECK(batched || self.dim() == ndim + 1, op, ": expected 'self' to have ", ndim + 1,
                " or ", ndim + 2, " dimensions, got ", self.sizes());
  LAMELLA_CHECK(output_size.size() == kernel_size.size(), op, ": expected 'output_size' to have ",
                ndim, " entries, got ", output_size.size());
  Dims shape(self.sizes().begin(), self.sizes().end() - ndim);
  int64_t planes = 1;
  for (int64_t n : shape) planes *= n;
  Dims in;
  int64_t points = 1, places = 1;
  for (int64_t d = 0; d < ndim; ++d) {
    const auto i = static_cast<size_t>(d);
    in.push_back(self.size(self.dim() - ndim + d));
    LAMELLA_CHECK(
        kernel_size[i] > 0 && output_size[i] > 0 && output_size[i] + kernel_size[i] - 1 <= in[i],
        op, ": expected windows of ", kernel_size, " to give ", output_size, " of ", self.sizes());
    shape.push_back(output_size[i]);
    points *= in[i];
    places *= output_size[i];
  }
  LAMELLA_CHECK(random_samples.dim() == 3 && random_samples.size(2) == ndim &&
                    random_samples.size(0) * random_samples.size(1) >= planes,
                op, ": expected 'random_samples' to have ", ndim, " numbers for each of ", planes,
                " planes, got ", random_samples.sizes());
  if (self.is_meta()) return lamella::empty(shape, self.options().dtype(kLong));
  const Tensor values = self.to(kDouble).contiguous(),
               samples = random_samples.to(self.scalar_type()).to(kDouble).contiguous();
  const Tensor result = lamella::empty(shape, values.options().dtype(kLong));
  const auto *x = values.const_data_ptr<double>(), *u = samples.const_data_ptr<double>();
  auto* out = result.mutable_data_ptr<int64_t>();
  in_parallel(planes, 1, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      std::vector<Dims> starts;
      for (int64_t d = 0; d < ndim; ++d) {
        const auto i = static_cast<size_t>(d);
        // The two samples of a plane have the innermost dimension first.
        const double sample = u[plane * ndim + (ndim == 2 ? 1 - d : d)];
        const double step = output_size[i] > 1 ? static_cast<double>(in[i] - kernel_size[i]) /
                                                     static_cast<double>(output_size[i] - 1)
                                               : 0;
        Dims line;
        for (int64_t k = 0; k + 1 < output_size[i]; ++k) {
          line.push_back(static_cast<int64_t>((static_cast<double>(k) + sample) * step) -
                         static_cast<int64_t>(sample * step));
        }
        line.push_back(in[i] - kernel_size[i]);
        starts.push_back(line);
      }
      int64_t window = 1;
      for (int64_t k : kernel_size) window *= k;
      for (int64_t place = 0; place < places; ++place) {
        int64_t best = -1;
        for (int64_t w = 0; w < window; ++w) {
          int64_t at = 0, size = 1, rest = place, inner = w;
          for (size_t d = kernel_size.size(); d-- > 0;) {
            at += (starts[d][static_cast<size_t>(rest % output_size[d])] + inner % kernel_size[d]) *
                  size;
            rest /= output_size[d];
            inner /= kernel_size[d];
            size *= in[d];
          }
          const double value = x[plane * points + at];
          if (best < 0 || value > x[plane * points + best] || value != value) best = at;
        }
        out[plane * places + place] = best;
      }
    }
  });
  return result;
}

namespace {
std::tuple<Tensor, Tensor> fractional_pool(const Tensor& self, IntArrayRef kernel_size,
                                           IntArrayRef output_size, const Tensor& samples) {
  const auto ndim = static_cast<int64_t>(kernel_size.size());
  const Tensor at = aten::_fractional_max_pool_places(self, kernel_size, output_size, samples);
  return {self.flatten(-ndim).gather(-1, at.flatten(-ndim)).reshape(at.sizes()), at};
}
}  // namespace

std::tuple<Tensor, Tensor> fractional_max_pool2d(const Tensor& self, IntArrayRef kernel_size,
                                                 IntArrayRef output_size,
                                                 const Tensor& random_samples) {
  return fractional_pool(self, kernel_size, output_size, random_samples);
}
std::tuple<Tensor, Tensor> fractional_max_pool3d(const Tensor& self, IntArrayRef kernel_size,
                                                 IntArrayRef output_size,
                                                 const Tensor& random_samples) {
  return fractional_pool(self, kernel_size, output_size, random_samples);
}

// ---- Others ----

Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                const std::optional<Tensor>& bias) {
  const char* op = "bilinear";
  LAMELLA_CHECK(weight.dim() == 3 && input1.dim() > 0 && input1.dim() == input2.dim() &&
                    input1.size(-1) == weight.size(1) && input2.size(-1) == weight.size(2),
                op, ": expected 'weight' [out, in1, in2] to fit the inputs' last dimensions, got ",
                weight.sizes(), " for ", input1.sizes(), " and ", input2.sizes());
  for (int64_t d = 0; d + 1 < input1.dim(); ++d) {
    LAMELLA_CHECK(input1.size(d) == input2.size(d), op,
                  ": expected the inputs to differ only in their last dimension, got ",
                  input1.sizes(), " and ", input2.sizes());
  }
  const int64_t out = weight.size(0), in2 = weight.size(2);
  Dims shape(input1.sizes().begin(), input1.sizes().end() - 1);
  shape.insert(shape.end(), {out, in2});
  Tensor result = input1.matmul(weight.permute({1, 0, 2}).reshape({weight.size(1), out * in2}))
                      .reshape(shape)
                      .mul(input2.unsqueeze(-2))
                      .sum(IntArrayRef(int64_t{-1}));
  return bias.has_value() && bias->defined() ? result.add(*bias) : result;
}

// Rows that contain only -inf become zeros.
Tensor _safe_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  const Tensor none = self.eq(-std::numeric_limits<double>::infinity()).all(dim, true);
  // Such rows are replaced before softmax, whose gradient would be NaN.
  const Tensor result = lamella::softmax(self.masked_fill(none, 0), dim, dtype);
  return result.masked_fill(none, 0);
}

// Batch normalization with an empty fourth result, in which other backends keep data for backward.
namespace {
std::tuple<Tensor, Tensor, Tensor, Tensor> with_reserve(
    const std::tuple<Tensor, Tensor, Tensor>& results) {
  const auto& [output, mean, inverse] = results;
  return {output, mean, inverse, lamella::empty({0}, mean.options().dtype(kByte))};
}
}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> _batch_norm_with_update(
    const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
    Tensor& running_mean, Tensor& running_var, double momentum, double eps) {
  return with_reserve(lamella::_native_batch_norm_legit(input, weight, bias, running_mean,
                                                        running_var, true, momentum, eps));
}
std::tuple<Tensor, Tensor, Tensor, Tensor> _batch_norm_no_update(
    const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
    const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var,
    double momentum, double eps) {
  return with_reserve(lamella::native_batch_norm(input, weight, bias, running_mean, running_var,
                                                 false, momentum, eps));
}

}  // namespace aten::native
