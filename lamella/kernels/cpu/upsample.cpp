// Interpolation: nearest neighbours and linear, and the operators' backwards.
#include <algorithm>

#include "lamella/kernels/cpu/resample.h"

namespace lamella::native {

namespace {
enum class Kind { kNearest, kNearestExact, kLinear, kLinearCorners };
Kind linear(bool align_corners) { return align_corners ? Kind::kLinearCorners : Kind::kLinear; }

// The step in the input for one step of the output. A given scale is used itself, not the ratio of
// sizes. PyTorch's exceptions: linear interpolation that keeps a size, and nearest interpolation in
// two dimensions (`plane`) that keeps or doubles one.
double step_of(Kind kind, bool plane, int64_t in, int64_t out, std::optional<double> scale) {
  bool nearest = kind == Kind::kNearest && plane;
  if (in == out && (nearest || kind == Kind::kLinear)) return 1;
  if (nearest && out % 2 == 0 && out / 2 == in) return 0.5;
  if (kind == Kind::kLinearCorners) {
    return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
  }
  if (scale.has_value() && *scale > 0) return 1 / *scale;
  return static_cast<double>(in) / static_cast<double>(out);
}

// Converts a position to an index, limited to [0, last].
int64_t element_at(double place, int64_t last) {
  if (!(place > 0)) return 0;
  return place < static_cast<double>(last) ? static_cast<int64_t>(place) : last;
}

void lay_axis(ResampleAxis& axis, Kind kind, bool plane, std::optional<double> scale,
              bool in_float) {
  double step = step_of(kind, plane, axis.in, axis.out, scale);
  if (in_float) step = static_cast<double>(static_cast<float>(step));
  for (int64_t o = 0; o < axis.out; ++o) {
    auto at = static_cast<double>(o);
    int64_t last = axis.in - 1;
    if (kind == Kind::kNearest || kind == Kind::kNearestExact) {
      if (kind == Kind::kNearestExact) at += 0.5;
      // float32 as in PyTorch, so that ties fall to the same side.
      float place = static_cast<float>(at) * static_cast<float>(step);
      axis.first.push_back(element_at(static_cast<double>(place), last));
      continue;
    }
    double place = kind == Kind::kLinearCorners ? at * step : (at + 0.5) * step - 0.5;
    if (!(place > 0)) place = 0;
    int64_t i = element_at(place, last);
    double share = place - static_cast<double>(i);
    axis.first.push_back(i);
    axis.second.push_back(i < last ? i + 1 : i);
    axis.share.push_back(share < 0 ? 0 : share > 1 ? 1 : share);
  }
}

Resample resized(const char* op, IntArrayRef sizes, IntArrayRef output_size, Kind kind,
                 std::initializer_list<std::optional<double>> scales, ScalarType dtype) {
  size_t spatial = scales.size();
  LAMELLA_CHECK(sizes.size() == spatial + 2, op, ": expected 'self' to have ", spatial + 2,
                " dimensions, got ", sizes);
  LAMELLA_CHECK(output_size.size() == spatial, op, ": expected 'output_size' to have ", spatial,
                " entries, got ", output_size);
  Resample r;
  r.shape = Dims(sizes.slice(0, 2));
  r.planes = product(r.shape);
  r.leading = 2;
  r.mixes = kind == Kind::kLinear || kind == Kind::kLinearCorners;
  for (size_t d = 0; d < 3; ++d) {
    if (d < 3 - spatial) continue;
    size_t at = d - (3 - spatial);
    r.axes[d].in = sizes[at + 2];
    LAMELLA_CHECK(sizes[at + 2] > 0 && output_size[at] > 0, op,
                  ": expected sizes greater than 0, got ", sizes, " and 'output_size' ",
                  output_size);
    r.axes[d].out = output_size[at];
    r.axes[d].lay = [kind, plane = spatial == 2, scale = scales.begin()[at],
                     in_float = dtype != kDouble](ResampleAxis& laid) {
      lay_axis(laid, kind, plane, scale, in_float);
    };
    r.shape.push_back(output_size[at]);
  }
  return r;
}
}  // namespace

// Defines an operator, and its backward. `parameters` are those behind the sizes, then come the
// scales of the spatial dimensions.
#define LAMELLA_PARAMETERS(...) __VA_ARGS__
#define LAMELLA_RESIZE(name, kind, parameters, ...)                                                \
  Tensor name(const Tensor& self, IntArrayRef output_size, LAMELLA_PARAMETERS parameters) {        \
    return resample(                                                                               \
        #name, resized(#name, self.sizes(), output_size, kind, {__VA_ARGS__}, self.scalar_type()), \
        self);                                                                                     \
  }                                                                                                \
  LAMELLA_RESIZE_BACKWARD(name##_backward, kind, parameters, __VA_ARGS__)
#define LAMELLA_RESIZE_BACKWARD(name, kind, parameters, ...)                                     \
  Tensor name(const Tensor& grad_output, IntArrayRef output_size, IntArrayRef input_size,        \
              LAMELLA_PARAMETERS parameters) {                                                   \
    return resample_backward(                                                                    \
        #name,                                                                                   \
        resized(#name, input_size, output_size, kind, {__VA_ARGS__}, grad_output.scalar_type()), \
        grad_output, input_size);                                                                \
  }
using Scale = std::optional<double>;
LAMELLA_RESIZE(upsample_nearest1d, Kind::kNearest, (Scale w), w)
LAMELLA_RESIZE(upsample_nearest2d, Kind::kNearest, (Scale h, Scale w), h, w)
LAMELLA_RESIZE(upsample_nearest3d, Kind::kNearest, (Scale d, Scale h, Scale w), d, h, w)
LAMELLA_RESIZE(_upsample_nearest_exact1d, Kind::kNearestExact, (Scale w), w)
LAMELLA_RESIZE(_upsample_nearest_exact2d, Kind::kNearestExact, (Scale h, Scale w), h, w)
LAMELLA_RESIZE(_upsample_nearest_exact3d, Kind::kNearestExact, (Scale d, Scale h, Scale w), d, h, w)
LAMELLA_RESIZE(upsample_linear1d, linear(corners), (bool corners, Scale w), w)
LAMELLA_RESIZE(upsample_trilinear3d, linear(corners), (bool corners, Scale d, Scale h, Scale w), d,
               h, w)
LAMELLA_RESIZE_BACKWARD(upsample_bilinear2d_backward, linear(corners),
                        (bool corners, Scale h, Scale w), h, w)

namespace {
// Resizes the middle one of three dimensions of bytes. Weights are 16-bit fixed-point numbers with
// the same number of fraction bits as in PyTorch and Pillow.
void resize_bytes(const ResampleAxis& axis, int64_t outer, int64_t inner, const uint8_t* from,
                  uint8_t* to) {
  double most = 0;
  for (double share : axis.share) most = std::max({most, share, 1 - share});
  const int places = most * 32768 + 0.5 < 32768 ? 15 : 14;
  const double unit = 1 << places;
  parallel_for(0, outer, kGrainSize / 4 / (axis.out * inner + 1) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t line = begin * axis.out; line < end * axis.out; ++line) {
                   const auto o = static_cast<size_t>(line % axis.out);
                   const uint8_t* plane = from + line / axis.out * axis.in * inner;
                   const uint8_t* a = plane + axis.first[o] * inner;
                   const uint8_t* b = plane + axis.second[o] * inner;
                   const auto left = static_cast<int32_t>((1 - axis.share[o]) * unit + 0.5);
                   const auto right = static_cast<int32_t>(axis.share[o] * unit + 0.5);
                   for (int64_t i = 0; i < inner; ++i) {
                     const int32_t sum = left * a[i] + right * b[i] + (1 << (places - 1));
                     to[line * inner + i] = static_cast<uint8_t>(std::min(sum >> places, 255));
                   }
                 }
               });
}
// Bilinear interpolation of bytes rounds to bytes between its two dimensions, as in PyTorch.
Tensor resample_bytes(const Resample& r, const Tensor& self) {
  Tensor wide =
      new_tensor({r.shape[0], r.shape[1], r.axes[1].in, r.axes[2].out}, kByte, self.device());
  Tensor out = new_tensor(r.shape, kByte, self.device());
  if (self.is_meta()) return out;
  ResampleAxis rows = r.axes[1], columns = r.axes[2];
  rows.lay(rows);
  columns.lay(columns);
  for (ResampleAxis* axis : {&rows, &columns}) {
    for (size_t o = 0; o < axis->share.size(); ++o) {
      if (axis->first[o] == axis->second[o]) axis->share[o] = 0;  // one element has all the weight
    }
  }
  const Tensor x = self.contiguous();
  resize_bytes(columns, r.planes * rows.in, 1, x.const_data_ptr<uint8_t>(),
               wide.mutable_data_ptr<uint8_t>());
  resize_bytes(rows, r.planes, columns.out, wide.const_data_ptr<uint8_t>(),
               out.mutable_data_ptr<uint8_t>());
  return out.contiguous(self.suggest_memory_format());
}
}  // namespace

Tensor upsample_bilinear2d(const Tensor& self, IntArrayRef output_size, bool corners, Scale h,
                           Scale w) {
  const char* op = "upsample_bilinear2d";
  bool is_bytes = self.scalar_type() == kByte;
  Resample r = resized(op, self.sizes(), output_size, linear(corners), {h, w},
                       is_bytes ? kDouble : self.scalar_type());
  return is_bytes ? resample_bytes(r, self) : resample(op, r, self);
}

}  // namespace lamella::native
