// conv1d to conv3d, also with padding given by name, and conv_transpose1d to 3d, all made of
// `convolution`.
#include "lamella/core/checked_size.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

namespace {
// Calls convolve() with a batch; a single sample becomes a batch of one, which is removed from the
// result.
template <class F>
Tensor with_batch(const char* op, const Tensor& input, const Tensor& weight, int64_t spatial,
                  F&& convolve) {
  LAMELLA_CHECK(input.dim() == spatial + 1 || input.dim() == spatial + 2, op,
                ": expected 'input' to have ", spatial + 1, " or ", spatial + 2,
                " dimensions, got ", input.sizes());
  LAMELLA_CHECK(weight.dim() == spatial + 2, op, ": expected 'weight' to have ", spatial + 2,
                " dimensions, got ", weight.sizes());
  if (input.dim() == spatial + 2) return convolve(input);
  return convolve(input.unsqueeze(0)).squeeze(0);
}

Tensor forward(const char* op, int64_t spatial, const Tensor& input, const Tensor& weight,
               const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
               IntArrayRef dilation, int64_t groups) {
  static constexpr int64_t zero[1] = {0};
  return with_batch(op, input, weight, spatial, [&](const Tensor& x) {
    return lamella::convolution(x, weight, bias, stride, padding, dilation, false, zero, groups);
  });
}
Tensor named(const char* op, int64_t spatial, const Tensor& input, const Tensor& weight,
             const std::optional<Tensor>& bias, IntArrayRef stride, std::string_view padding,
             IntArrayRef dilation, int64_t groups) {
  return with_batch(op, input, weight, spatial, [&](const Tensor& x) {
    return lamella::_convolution_mode(x, weight, bias, stride, padding, dilation, groups);
  });
}
Tensor transposed(const char* op, int64_t spatial, const Tensor& input, const Tensor& weight,
                  const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                  IntArrayRef output_padding, int64_t groups, IntArrayRef dilation) {
  return with_batch(op, input, weight, spatial, [&](const Tensor& x) {
    return lamella::convolution(x, weight, bias, stride, padding, dilation, true, output_padding,
                                groups);
  });
}
}  // namespace

Tensor _convolution_mode(const Tensor& input, const Tensor& weight,
                         const std::optional<Tensor>& bias, IntArrayRef stride,
                         std::string_view padding, IntArrayRef dilation, int64_t groups) {
  const char* op = "convolution";
  static constexpr int64_t zero[1] = {0};
  if (padding == "valid") {
    return lamella::convolution(input, weight, bias, stride, zero, dilation, false, zero, groups);
  }
  LAMELLA_CHECK(padding == "same", op, ": expected 'padding' to be 'same' or 'valid', got '",
                padding, "'");
  for (int64_t s : stride) {
    LAMELLA_CHECK(s == 1, op, ": expected 'stride' to be 1 with 'padding' 'same', got ", stride);
  }
  LAMELLA_CHECK(weight.dim() > 2, op, ": expected 'weight' to have at least 3 dimensions, got ",
                weight.sizes());
  size_t spatial = weight.sizes().size() - 2;
  LAMELLA_CHECK(dilation.size() == 1 || dilation.size() == spatial, op,
                ": expected 'dilation' to have 1 or ", spatial, " entries, got ", dilation);
  Dims both, after(2 * spatial, 0);
  bool even = true;
  for (size_t d = 0; d < spatial; ++d) {
    CheckedSize reach(dilation[dilation.size() == 1 ? 0 : d], op);
    int64_t total = (reach * (weight.sizes()[d + 2] - 1)).value();
    both.push_back(total / 2);
    // An odd total puts the extra element at the end.
    after[2 * (spatial - 1 - d) + 1] = total % 2;
    even = even && total % 2 == 0;
  }
  Tensor padded = even ? input : lamella::constant_pad_nd(input, after, 0);
  return lamella::convolution(padded, weight, bias, stride, both, dilation, false, zero, groups);
}

Tensor conv1d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  return forward("conv1d", 1, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  return forward("conv2d", 2, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv3d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  return forward("conv3d", 3, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv1d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              IntArrayRef stride, std::string_view padding, IntArrayRef dilation, int64_t groups) {
  return named("conv1d", 1, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              IntArrayRef stride, std::string_view padding, IntArrayRef dilation, int64_t groups) {
  return named("conv2d", 2, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv3d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              IntArrayRef stride, std::string_view padding, IntArrayRef dilation, int64_t groups) {
  return named("conv3d", 3, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv_transpose1d(const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                        IntArrayRef output_padding, int64_t groups, IntArrayRef dilation) {
  return transposed("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding,
                    groups, dilation);
}
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                        IntArrayRef output_padding, int64_t groups, IntArrayRef dilation) {
  return transposed("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding,
                    groups, dilation);
}
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                        IntArrayRef output_padding, int64_t groups, IntArrayRef dilation) {
  return transposed("conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding,
                    groups, dilation);
}

}  // namespace lamella::native
