// Interpolation that does not alias: where an image shrinks, the filter grows with the distance
// between outputs, so that every element counts. An output's weights sum to 1.
#include <algorithm>
#include <cmath>

#include "lamella/more/resize.h"

namespace aten::native {
namespace {

// Filters of the distance from an output, in inputs where it does not shrink.
double bilinear(double x) { return x < 1 ? 1 - x : 0; }

// R. Keys, Cubic convolution interpolation for digital image processing, 1981, with the parameter
// -0.5.
double bicubic(double x) {
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

// C. Lanczos' sinc(x) sinc(x / 3).
double lanczos(double x) {
  if (x >= 3) return 0;
  const double angle = 3.14159265358979323846 * x;
  return x == 0 ? 1 : 3 * std::sin(angle) * std::sin(angle / 3) / (angle * angle);
}

// Rounds weights to as many binary places as keep them in 16 bits, which are those that PyTorch and
// Pillow resize bytes with: so results have the same bits.
void round_weights(std::vector<std::vector<double>>& weights) {
  double largest = 0;
  for (const auto& line : weights) {
    for (double w : line) largest = std::max(largest, w);
  }
  double unit = 1;
  for (int bits = 0; bits < 22 && std::floor(0.5 + largest * unit * 2) < 32768; ++bits) unit *= 2;
  for (auto& line : weights) {
    for (double& w : line) w = std::round(w * unit) / unit;
  }
}

Tensor shrunk(const Tensor& x, int64_t dim, int64_t out, bool align_corners,
              const std::optional<double>& scale, double reach, double (*filter)(double),
              bool bytes) {
  const int64_t in = x.size(dim);
  if (in == out) return x;  // whatever scale is given, as in PyTorch
  const double step = resize_step(in, out, align_corners, scale), wide = std::max(step, 1.0);
  const auto most = static_cast<size_t>(
      std::min<int64_t>(in, 2 * static_cast<int64_t>(std::ceil(reach * wide)) + 1));
  const auto outs = static_cast<size_t>(out);
  std::vector<std::vector<double>> weights(most, std::vector<double>(outs, 0));
  std::vector<std::vector<int64_t>> places(most, std::vector<int64_t>(outs, 0));
  for (size_t o = 0; o < outs; ++o) {
    const double center = step * (static_cast<double>(o) + 0.5);
    const auto whole = [&](double place) {
      return static_cast<int64_t>(std::clamp(place + 0.5, 0.0, static_cast<double>(in)));
    };
    // A scale that does not belong to the sizes can lead behind the image, whose edge it then
    // reads.
    const int64_t first = std::min(whole(center - reach * wide), in - 1);
    const int64_t end = std::max(whole(center + reach * wide), first + 1);
    double sum = 0;
    for (size_t k = 0; k < most && first + static_cast<int64_t>(k) < end; ++k) {
      const int64_t place = first + static_cast<int64_t>(k);
      places[k][o] = place;
      weights[k][o] = filter(std::abs((static_cast<double>(place) - center + 0.5) / wide));
      sum += weights[k][o];
    }
    if (sum == 0) weights[0][o] = sum = 1;
    for (std::vector<double>& line : weights) line[o] /= sum;
  }
  if (bytes) round_weights(weights);
  std::vector<ResizeTap> taps;
  const auto made = [&](const auto& numbers, ScalarType dtype) {
    Tensor t = lamella::empty({out}, TensorOptions(dtype).device(kCPU));
    std::copy(numbers.begin(), numbers.end(),
              static_cast<std::remove_cvref_t<decltype(numbers[0])>*>(t.mutable_data_ptr()));
    return t.to(x.device());
  };
  for (size_t k = 0; k < most; ++k)
    taps.push_back({made(places[k], kLong), made(weights[k], kDouble)});
  return weighted_sum(x, dim, taps);
}

Tensor antialiased(const char* op, const Tensor& self, IntArrayRef output_size, bool align_corners,
                   const std::optional<double>& high, const std::optional<double>& wide,
                   double reach, double (*filter)(double)) {
  check_resize(op, self, output_size);
  const ScalarType type = self.scalar_type();
  LAMELLA_CHECK_NOT_IMPLEMENTED(self.is_floating_point() || type == kByte, op,
                                ": expected 'self' to be floating point or uint8, got ", type);
  const bool bytes = type == kByte;
  Tensor x = type == kDouble || bytes ? self.to(kDouble) : self.to(kFloat);
  const auto pass = [&](int64_t dim, int64_t out, const std::optional<double>& scale) {
    x = shrunk(x, dim, out, align_corners, scale, reach, filter, bytes);
    if (bytes) x = x.add(0.5).floor().clamp(0, 255);
  };
  pass(3, output_size[1], wide);
  pass(2, output_size[0], high);
  return x.to(type);
}

}  // namespace

Tensor _upsample_bilinear2d_aa(const Tensor& self, IntArrayRef output_size, bool align_corners,
                               std::optional<double> scales_h, std::optional<double> scales_w) {
  return antialiased("_upsample_bilinear2d_aa", self, output_size, align_corners, scales_h,
                     scales_w, 1, &bilinear);
}
Tensor _upsample_bilinear2d_aa(const Tensor& input, OptionalIntArrayRef output_size,
                               bool align_corners, std::optional<ArrayRef<double>> scale_factors) {
  return resize_by("_upsample_bilinear2d_aa", input, output_size, scale_factors,
                   [&](IntArrayRef size, std::optional<double> high, std::optional<double> wide) {
                     return aten::_upsample_bilinear2d_aa(input, size, align_corners, high, wide);
                   });
}

Tensor _upsample_bicubic2d_aa(const Tensor& self, IntArrayRef output_size, bool align_corners,
                              std::optional<double> scales_h, std::optional<double> scales_w) {
  return antialiased("_upsample_bicubic2d_aa", self, output_size, align_corners, scales_h, scales_w,
                     2, &bicubic);
}
Tensor _upsample_bicubic2d_aa(const Tensor& input, OptionalIntArrayRef output_size,
                              bool align_corners, std::optional<ArrayRef<double>> scale_factors) {
  return resize_by("_upsample_bicubic2d_aa", input, output_size, scale_factors,
                   [&](IntArrayRef size, std::optional<double> high, std::optional<double> wide) {
                     return aten::_upsample_bicubic2d_aa(input, size, align_corners, high, wide);
                   });
}

Tensor _upsample_lanczos2d_aa(const Tensor& self, IntArrayRef output_size, bool align_corners,
                              std::optional<double> scales_h, std::optional<double> scales_w) {
  const char* op = "_upsample_lanczos2d_aa";
  LAMELLA_CHECK(!align_corners, op, ": expected 'align_corners' to be False, got True");
  return antialiased(op, self, output_size, align_corners, scales_h, scales_w, 3, &lanczos);
}
Tensor _upsample_lanczos2d_aa(const Tensor& input, OptionalIntArrayRef output_size,
                              bool align_corners, std::optional<ArrayRef<double>> scale_factors) {
  return resize_by("_upsample_lanczos2d_aa", input, output_size, scale_factors,
                   [&](IntArrayRef size, std::optional<double> high, std::optional<double> wide) {
                     return aten::_upsample_lanczos2d_aa(input, size, align_corners, high, wide);
                   });
}

}  // namespace aten::native
