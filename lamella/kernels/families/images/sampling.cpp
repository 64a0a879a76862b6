// Samples images between their pixels: grid_sample and bicubic interpolation. Made of gathers and
// products, which provide the gradients.
#include "lamella/kernels/by_capability.h"
#include "lamella/kernels/families/images/resize.h"
#include "lamella/kernels/families/images/samples.h"

namespace lamella::images {
#if defined(__x86_64__)
namespace AVX2 {
template <class T>
void sample_points(const Samples<T>& s, int64_t begin, int64_t end);
}  // namespace AVX2
namespace AVX512 {
template <class T>
void sample_points(const Samples<T>& s, int64_t begin, int64_t end);
}  // namespace AVX512
#endif
namespace DEFAULT {
template <class T>
void sample_points(const Samples<T>& s, int64_t begin, int64_t end);
}  // namespace DEFAULT

namespace {
template <class T>
void sample_on_cpu(const Samples<T>& s, int64_t begin, int64_t end) {
  LAMELLA_RETURN_BY_CAPABILITY("grid_sampler", sample_points(s, begin, end));
}
}  // namespace
}  // namespace lamella::images

namespace aten::native {
namespace {

using namespace lamella::images;  // NOLINT(google-build-using-namespace): of this folder

// Reflects coordinates at low / 2 and high / 2 until they lie between.
Tensor reflected(const Tensor& x, int64_t low, int64_t high) {
  if (low == high) return lamella::zeros_like(x);
  const double least = static_cast<double>(low) / 2, span = static_cast<double>(high - low) / 2;
  const Tensor from = x.sub(least).abs();
  const Tensor extra = lamella::fmod(from, span);
  const Tensor odd = lamella::fmod(from.div(span).floor(), 2).ne(0);
  return lamella::where(odd, extra.neg().add(span), extra).add(least);
}

Tensor padded(const Tensor& x, int64_t size, int64_t padding, bool align_corners) {
  if (padding == kZeros) return x;
  Tensor inside = x;
  if (padding == kReflection) {
    inside = align_corners ? reflected(x, 0, 2 * (size - 1)) : reflected(x, -1, 2 * size - 1);
  }
  return lamella::where(inside.isnan(), 0, inside).clamp(0, size - 1);  // NaN is placed at 0
}

struct Tap {
  Tensor index, weight, inside;  // weights are 0 where the place is not inside of the image
};

Tap tap_at(const Tensor& place, const Tensor& weight, int64_t size) {
  const Tensor inside = place.ge(0).logical_and(place.le(size - 1));
  const Tensor mask = inside.to(place.scalar_type());
  return {lamella::where(inside, place, 0).to(kLong), weight.defined() ? weight.mul(mask) : mask,
          inside};
}

// Weights of four points for the position at distance `t` after the second point (R. Keys, Cubic
// convolution interpolation for digital image processing, 1981), with the parameter -0.75.
std::vector<Tensor> cubic_weights(const Tensor& t) {
  constexpr double kA = -0.75;
  auto inner = [](const Tensor& x) {  // for distances up to 1
    return x.mul(kA + 2).sub(kA + 3).mul(x).mul(x).add(1);
  };
  auto outer = [](const Tensor& x) {  // up to 2
    return x.mul(kA).sub(5 * kA).mul(x).add(8 * kA).mul(x).sub(4 * kA);
  };
  const Tensor rest = t.neg().add(1);
  return {outer(t.add(1)), inner(t), inner(rest), outer(rest.add(1))};
}

std::vector<Tap> taps_of(const Tensor& coordinate, int64_t size, int64_t mode, int64_t padding,
                         bool align_corners) {
  const Tensor x = align_corners ? coordinate.add(1).mul(static_cast<double>(size - 1) / 2)
                                 : coordinate.add(1).mul(static_cast<double>(size)).sub(1).div(2);
  std::vector<Tap> taps;
  if (mode == kBicubic) {
    const Tensor first = x.floor();
    const auto weights = cubic_weights(x.sub(first));
    for (int k = 0; k < 4; ++k) {
      const Tensor place = padded(first.add(k - 1), size, padding, align_corners);
      taps.push_back(tap_at(place, weights[static_cast<size_t>(k)], size));
    }
    return taps;
  }
  const Tensor place = padded(x, size, padding, align_corners);
  if (mode == kNearest) return {tap_at(place.round(), Tensor(), size)};
  const Tensor first = place.floor();
  const Tensor behind = place.sub(first);
  return {tap_at(first, behind.neg().add(1), size), tap_at(first.add(1), behind, size)};
}

template <class T>
Tensor sampled(const Tensor& input, const Tensor& grid, Mode mode, Padding padding,
               bool align_corners) {
  const int64_t channels = input.size(1), points = grid.size(1) * grid.size(2);
  const Tensor out =
      lamella::empty({input.size(0), channels, grid.size(1), grid.size(2)}, input.options());
  const Samples<T> all = {input.const_data_ptr<T>(),
                          grid.const_data_ptr<T>(),
                          out.mutable_data_ptr<T>(),
                          channels,
                          {input.size(2), input.size(3)},
                          points,
                          mode,
                          padding,
                          align_corners};
  const int64_t pixels = all.size[0] * all.size[1];
  in_parallel(input.size(0) * points, 1 + 32768 / (channels + 8), [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end;) {
      const int64_t n = at / points, last = std::min(end, (n + 1) * points);
      Samples<T> one = all;
      one.image += n * channels * pixels;
      one.grid += n * points * 2;
      one.out += n * channels * points;
      sample_on_cpu(one, at - n * points, last - n * points);
      at = last;
    }
  });
  return out;
}

Tensor sample(const char* op, const Tensor& input, const Tensor& grid, int64_t mode,
              int64_t padding, bool align_corners) {
  const int64_t ndim = input.dim() - 2;
  LAMELLA_CHECK(grid.dim() == input.dim() && grid.size(-1) == ndim && grid.size(0) == input.size(0),
                op, ": expected 'grid' to be [", input.dim() > 0 ? input.size(0) : 0, ", ..., ",
                ndim, "] with ", input.dim(), " dimensions, got ", grid.sizes());
  LAMELLA_CHECK_TYPE(input.scalar_type() == grid.scalar_type() && input.is_floating_point(), op,
                     ": expected 'input' and 'grid' of one floating-point dtype, got ",
                     input.scalar_type(), " and ", grid.scalar_type());
  LAMELLA_CHECK(mode >= 0 && mode <= 2 && padding >= 0 && padding <= 2, op,
                ": expected an interpolation and a padding mode in [0, 2], got ", mode, " and ",
                padding);
  LAMELLA_CHECK(mode != kBicubic || ndim == 2, op,
                ": expected 'input' to have 4 dimensions for bicubic interpolation, got ",
                input.sizes());
  for (int64_t d = 2; d < input.dim(); ++d) {
    LAMELLA_CHECK(input.size(d) > 0, op, ": expected 'input' to have pixels, got ", input.sizes());
  }
  const ScalarType type = input.scalar_type();
  if (ndim == 2 && (type == kFloat || type == kDouble) && is_plain(input) && is_plain(grid) &&
      input.size(2) <= INT32_MAX / input.size(3)) {
    return (type == kFloat ? sampled<float>
                           : sampled<double>)(input.contiguous(), grid.contiguous(),
                                              static_cast<Mode>(mode),
                                              static_cast<Padding>(padding), align_corners);
  }
  // Coordinates have the innermost dimension first.
  std::vector<std::vector<Tap>> axes;
  for (int64_t d = 0; d < ndim; ++d) {
    axes.push_back(
        taps_of(grid.select(-1, ndim - 1 - d), input.size(2 + d), mode, padding, align_corners));
  }
  Dims out = {input.size(0), input.size(1)};
  for (int64_t d = 1; d + 1 < grid.dim(); ++d) out.push_back(grid.size(d));
  const Tensor flat = input.flatten(2);
  Tensor sum;
  std::vector<size_t> at(axes.size(), 0);
  for (bool more = true; more;) {
    Tensor index, weight, inside;
    for (size_t d = 0; d < axes.size(); ++d) {
      const Tap& tap = axes[d][at[d]];
      index =
          d == 0 ? tap.index : index.mul(input.size(static_cast<int64_t>(2 + d))).add(tap.index);
      weight = d == 0 ? tap.weight : weight.mul(tap.weight);
      inside = d == 0 ? tap.inside : inside.logical_and(tap.inside);
    }
    Dims wide = {input.size(0), input.size(1), index.numel() / std::max<int64_t>(1, input.size(0))};
    const Tensor all = index.reshape({input.size(0), 1, wide[2]}).expand(wide);
    const Dims each = {input.size(0), 1, wide[2]};
    // A pixel that is not finite reaches no point outside of the image.
    const Tensor pixels = lamella::where(inside.reshape(each), flat.gather(2, all), 0);
    const Tensor part = pixels.mul(weight.reshape(each));
    sum = sum.defined() ? sum.add(part) : part;
    more = false;
    for (size_t d = axes.size(); d-- > 0 && !more;) {
      more = ++at[d] < axes[d].size();
      if (!more) at[d] = 0;
    }
  }
  return sum.reshape(out);
}

}  // namespace

Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                       int64_t padding_mode, bool align_corners) {
  LAMELLA_CHECK(input.dim() == 4, "grid_sampler_2d: expected 'input' to have 4 dimensions, got ",
                input.sizes());
  return sample("grid_sampler_2d", input, grid, interpolation_mode, padding_mode, align_corners);
}
Tensor grid_sampler_3d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                       int64_t padding_mode, bool align_corners) {
  LAMELLA_CHECK(input.dim() == 5, "grid_sampler_3d: expected 'input' to have 5 dimensions, got ",
                input.sizes());
  return sample("grid_sampler_3d", input, grid, interpolation_mode, padding_mode, align_corners);
}
Tensor grid_sampler(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                    int64_t padding_mode, bool align_corners) {
  LAMELLA_CHECK(input.dim() == 4 || input.dim() == 5,
                "grid_sampler: expected 'input' to have 4 or 5 dimensions, got ", input.sizes());
  return sample("grid_sampler", input, grid, interpolation_mode, padding_mode, align_corners);
}

// ---- Bicubic interpolation ----

Tensor weighted_sum(const Tensor& x, int64_t dim, const std::vector<ResizeTap>& taps) {
  Dims shape(static_cast<size_t>(x.dim()), 1);
  shape[static_cast<size_t>(dim)] = taps[0].place.size(0);
  Tensor sum;
  for (const ResizeTap& tap : taps) {
    const Tensor part =
        x.index_select(dim, tap.place).mul(tap.weight.to(x.scalar_type()).reshape(shape));
    sum = sum.defined() ? sum.add(part) : part;
  }
  return sum;
}

Tensor byte_weights(const Tensor& weights) {
  const Tensor places =
      lamella::log2(weights.amax(IntArrayRef()).reciprocal().mul(32767.5)).ceil().sub(1);
  const Tensor unit = lamella::exp2(places.clamp_max(22));
  return weights.mul(unit).round().div(unit);
}
Tensor as_bytes(const Tensor& sum) { return sum.add(0.5).floor().clamp(0, 255); }

double resize_step(int64_t in, int64_t out, bool align_corners,
                   const std::optional<double>& scale) {
  if (align_corners) {
    return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  }
  if (scale.has_value() && *scale > 0) return 1 / *scale;
  return static_cast<double>(in) / static_cast<double>(out);
}

void check_resize(const char* op, const Tensor& self, IntArrayRef output_size) {
  LAMELLA_CHECK(self.dim() == 4 && self.size(2) > 0 && self.size(3) > 0, op,
                ": expected 'self' to have 4 dimensions and at least 1 pixel, got ", self.sizes());
  LAMELLA_CHECK(output_size.size() == 2 && output_size[0] > 0 && output_size[1] > 0, op,
                ": expected 'output_size' to be two positive numbers, got ", output_size);
  LAMELLA_CHECK_TYPE(!self.is_complex(), op, ": expected 'self' to be real, got ",
                     self.scalar_type());
}

namespace {
Tensor resized(const Tensor& x, int64_t dim, int64_t out, bool align_corners,
               const std::optional<double>& scale, bool bytes) {
  const int64_t in = x.size(dim);
  const double step = resize_step(in, out, align_corners, scale);
  Tensor place = lamella::arange(out, TensorOptions(kDouble).device(x.device()));
  place = align_corners ? place.mul(step) : place.add(0.5).mul(step).sub(0.5);
  const Tensor first = place.floor();
  const auto weights = cubic_weights(place.sub(first));
  std::vector<ResizeTap> taps;
  for (int k = 0; k < 4; ++k) {
    taps.push_back({first.add(k - 1).clamp(0, in - 1).to(kLong), weights[static_cast<size_t>(k)]});
  }
  if (!bytes) return weighted_sum(x, dim, taps);
  // Taps at the same element are joined, so that the sum of their weights is rounded once.
  for (size_t k = 0; k + 1 < taps.size(); ++k) {
    const Tensor same = taps[k].place.eq(taps[k + 1].place);
    taps[k + 1].weight = taps[k + 1].weight.add(taps[k].weight.mul(same.to(kDouble)));
    taps[k].weight = taps[k].weight.masked_fill(same, 0);
  }
  std::vector<Tensor> all;
  for (const ResizeTap& tap : taps) all.push_back(tap.weight);
  const Tensor rounded = byte_weights(lamella::stack(all));
  for (size_t k = 0; k < taps.size(); ++k) {
    taps[k].weight = rounded.select(0, static_cast<int64_t>(k));
  }
  return as_bytes(weighted_sum(x, dim, taps));
}
}  // namespace

Tensor upsample_bicubic2d(const Tensor& self, IntArrayRef output_size, bool align_corners,
                          std::optional<double> scales_h, std::optional<double> scales_w) {
  check_resize("upsample_bicubic2d", self, output_size);
  const ScalarType type = self.scalar_type();
  Tensor x = type == kFloat ? self : self.to(kDouble);
  if (type == kHalf || type == kBFloat16) x = self.to(kFloat);
  const bool bytes = type == kByte;
  x = resized(x, 3, output_size[1], align_corners, scales_w, bytes);
  x = resized(x, 2, output_size[0], align_corners, scales_h, bytes);
  return x.to(type).contiguous(self.suggest_memory_format());
}

Tensor upsample_bicubic2d(const Tensor& input, OptionalIntArrayRef output_size, bool align_corners,
                          std::optional<ArrayRef<double>> scale_factors) {
  return resize_by("upsample_bicubic2d", input, output_size, scale_factors,
                   [&](IntArrayRef size, std::optional<double> high, std::optional<double> wide) {
                     return aten::upsample_bicubic2d(input, size, align_corners, high, wide);
                   });
}

}  // namespace aten::native
