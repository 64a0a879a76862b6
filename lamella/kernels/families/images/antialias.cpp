// Antialiased interpolation: when an image shrinks, the filter widens with the distance between
// outputs, so that every element contributes. An output's weights sum to 1.
#include <algorithm>
#include <cmath>

#include "lamella/kernels/families/images/resize.h"

namespace aten::native {
namespace {

// The filters, as functions of the distance from the output position; the distance is counted in
// input elements, or, when shrinking, in outputs.
Tensor bilinear(const Tensor& x) { return x.neg().add(1).clamp_min(0); }

// R. Keys, Cubic convolution interpolation for digital image processing, 1981, with the parameter
// -0.5.
Tensor bicubic(const Tensor& x) {
  const Tensor inner = x.mul(1.5).sub(2.5).mul(x).mul(x).add(1);
  const Tensor outer = x.mul(-0.5).add(2.5).mul(x).sub(4).mul(x).add(2);
  return lamella::where(x.lt(1), inner, outer).masked_fill(x.ge(2), 0);
}

// The Lanczos filter, sinc(x) sinc(x / 3).
Tensor lanczos(const Tensor& x) {
  return lamella::sinc(x).mul(lamella::sinc(x.div(3))).masked_fill(x.ge(3), 0);
}

using Filter = Tensor (*)(const Tensor& distance);

Tensor shrunk(const Tensor& x, int64_t dim, int64_t out, bool align_corners,
              const std::optional<double>& scale, double reach, Filter filter, bool bytes) {
  const int64_t in = x.size(dim);
  if (in == out) return x;  // for any given scale, as in PyTorch
  const double step = resize_step(in, out, align_corners, scale), wide = std::max(step, 1.0);
  const auto most =
      static_cast<int64_t>(std::min(static_cast<double>(in), 2 * std::ceil(reach * wide) + 1));
  const auto options = TensorOptions(kDouble).device(x.device());
  const Tensor center = lamella::arange(out, options).add(0.5).mul(step);
  // A scale that does not match the sizes may lead past the edge of the image, which is then read.
  const Tensor first = center.sub(reach * wide - 0.5).clamp(0, in).floor().clamp_max(in - 1);
  const Tensor end =
      lamella::maximum(center.add(reach * wide + 0.5).clamp(0, in).floor(), first.add(1));
  const Tensor place = lamella::arange(most, options).unsqueeze(1).add(first);  // [most, out]
  const Tensor share =
      filter(place.sub(center).add(0.5).div(wide).abs()).masked_fill(place.ge(end), 0);
  const Tensor sum = share.sum(IntArrayRef(int64_t{0}));
  // If all weights are 0, the output is the first element.
  const Tensor nearest = place.eq(first).to(kDouble);
  Tensor weight = lamella::where(sum.eq(0), nearest, share.div(sum));
  if (bytes) weight = byte_weights(weight);
  const Tensor index = place.clamp_max(in - 1).to(kLong);
  std::vector<ResizeTap> taps;
  for (int64_t k = 0; k < most; ++k) taps.push_back({index.select(0, k), weight.select(0, k)});
  return weighted_sum(x, dim, taps);
}

Tensor antialiased(const char* op, const Tensor& self, IntArrayRef output_size, bool align_corners,
                   const std::optional<double>& high, const std::optional<double>& wide,
                   double reach, Filter filter) {
  LAMELLA_CHECK(filter != &lanczos || !align_corners, op,
                ": expected 'align_corners' to be False, got True");
  check_resize(op, self, output_size);
  const ScalarType type = self.scalar_type();
  LAMELLA_CHECK_NOT_IMPLEMENTED(self.is_floating_point() || type == kByte, op,
                                ": expected 'self' to be floating point or uint8, got ", type);
  const bool bytes = type == kByte;
  Tensor x = type == kDouble || bytes ? self.to(kDouble) : self.to(kFloat);
  const auto pass = [&](int64_t dim, int64_t out, const std::optional<double>& scale) {
    x = shrunk(x, dim, out, align_corners, scale, reach, filter, bytes);
    if (bytes) x = as_bytes(x);
  };
  pass(3, output_size[1], wide);
  pass(2, output_size[0], high);
  return x.to(type).contiguous(self.suggest_memory_format());
}

}  // namespace

// Defines an operator, and its form with factors.
#define LAMELLA_ANTIALIASED(name, reach, filter)                                           \
  Tensor name(const Tensor& self, IntArrayRef output_size, bool align_corners,             \
              std::optional<double> scales_h, std::optional<double> scales_w) {            \
    return antialiased(#name, self, output_size, align_corners, scales_h, scales_w, reach, \
                       filter);                                                            \
  }                                                                                        \
  Tensor name(const Tensor& input, OptionalIntArrayRef output_size, bool align_corners,    \
              std::optional<ArrayRef<double>> scale_factors) {                             \
    return resize_by(                                                                      \
        #name, input, output_size, scale_factors,                                          \
        [&](IntArrayRef size, std::optional<double> high, std::optional<double> wide) {    \
          return aten::name(input, size, align_corners, high, wide);                       \
        });                                                                                \
  }
LAMELLA_ANTIALIASED(_upsample_bilinear2d_aa, 1, &bilinear)
LAMELLA_ANTIALIASED(_upsample_bicubic2d_aa, 2, &bicubic)
LAMELLA_ANTIALIASED(_upsample_lanczos2d_aa, 3, &lanczos)

}  // namespace aten::native
