// Functions that bicubic and antialiased interpolation share.
#pragma once
#include "lamella/kernels/families/families.h"

namespace aten::native {

// One input element that each output reads along a dimension: its index, int64, and its weight.
struct ResizeTap {
  Tensor place, weight;
};
// The sum over the taps of x at their places along `dim`, times their weights.
Tensor weighted_sum(const Tensor& x, int64_t dim, const std::vector<ResizeTap>& taps);

// Rounds weights to the 16-bit fixed-point format with which PyTorch and Pillow resize bytes, so
// that results are bit for bit equal.
Tensor byte_weights(const Tensor& weights);
// Rounds a sum of bytes times such weights to bytes, in the sum's dtype.
Tensor as_bytes(const Tensor& sum);

// The step in the input, of size `in`, for one step of the output, of size `out`.
double resize_step(int64_t in, int64_t out, bool align_corners, const std::optional<double>& scale);

// Throws unless `self` is an image that can be resized to `output_size`.
void check_resize(const char* op, const Tensor& self, IntArrayRef output_size);

// Calls f(output_size, scale_h, scale_w) for the overloads `vec`, which take either sizes or
// factors.
template <class F>
Tensor resize_by(const char* op, const Tensor& input, OptionalIntArrayRef output_size,
                 std::optional<ArrayRef<double>> scale_factors, const F& f) {
  LAMELLA_CHECK(input.dim() == 4, op, ": expected 'input' to have 4 dimensions, got ",
                input.sizes());
  LAMELLA_CHECK(output_size.has_value() != scale_factors.has_value(), op,
                ": expected either 'output_size' or 'scale_factors'");
  using Scale = std::optional<double>;
  if (output_size.has_value()) return f(*output_size, Scale(), Scale());
  LAMELLA_CHECK(scale_factors->size() == 2, op,
                ": expected 'scale_factors' to have 2 entries, got ", scale_factors->size());
  const double high = (*scale_factors)[0], wide = (*scale_factors)[1];
  const auto scaled = [&](int64_t d, double scale) {
    return static_cast<int64_t>(static_cast<double>(input.size(d)) * scale);
  };
  const Dims sizes = {scaled(2, high), scaled(3, wide)};
  return f(IntArrayRef(sizes), Scale(high), Scale(wide));
}

}  // namespace aten::native
