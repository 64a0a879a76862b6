// The operators for pooling, and their backwards.
#include "lamella/kernels/cpu/pooling.h"
#include "lamella/kernels/plain_tensor.h"

namespace lamella::native {

// ---- Maximum ----

namespace {
Pooling max_windows(const char* op, const Tensor& self, int spatial, IntArrayRef kernel_size,
                    IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  return fixed_pooling(op, self, spatial,
                       {kernel_size, stride, padding, dilation, ceil_mode, true});
}
}  // namespace

// Defines an operator whose name in messages is `op`, its backward, and the operator of the maxima
// alone, which has no places to compute where no layer asks for them.
#define LAMELLA_MAX_POOL(name, op, alone, spatial)                                                 \
  Tensor alone(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,                    \
               IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {                        \
    if (is_plain(self)) {                                                                          \
      Pooling p =                                                                                  \
          max_windows(op, self, spatial, kernel_size, stride, padding, dilation, ceil_mode);       \
      if (has_max_values(p, self)) return std::get<0>(max_pooling(op, std::move(p), self, true));  \
    }                                                                                              \
    return std::get<0>(lamella::name(self, kernel_size, stride, padding, dilation, ceil_mode));    \
  }                                                                                                \
  std::tuple<Tensor, Tensor> name(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, \
                                  IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {     \
    return max_pooling(                                                                            \
        op, max_windows(op, self, spatial, kernel_size, stride, padding, dilation, ceil_mode),     \
        self);                                                                                     \
  }                                                                                                \
  Tensor name##_backward(const Tensor& grad_output, const Tensor& self, IntArrayRef kernel_size,   \
                         IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,            \
                         bool ceil_mode, const Tensor& indices) {                                  \
    return max_pooling_backward(#name "_backward",                                                 \
                                max_windows(#name "_backward", self, spatial, kernel_size, stride, \
                                            padding, dilation, ceil_mode),                         \
                                grad_output, self, indices);                                       \
  }
LAMELLA_MAX_POOL(max_pool2d_with_indices, "max_pool2d", max_pool2d, 2)
LAMELLA_MAX_POOL(max_pool3d_with_indices, "max_pool3d", max_pool3d, 3)

std::tuple<Tensor, Tensor> adaptive_max_pool2d(const Tensor& self, IntArrayRef output_size) {
  const char* op = "adaptive_max_pool2d";
  return max_pooling(op, adaptive_pooling(op, self, 2, output_size), self);
}
std::tuple<Tensor, Tensor> adaptive_max_pool3d(const Tensor& self, IntArrayRef output_size) {
  const char* op = "adaptive_max_pool3d";
  return max_pooling(op, adaptive_pooling(op, self, 3, output_size), self);
}

namespace {
// The adaptive windows that belong to a gradient's shape.
Pooling windows_of(const char* op, const Tensor& self, int spatial, const Tensor& grad) {
  LAMELLA_CHECK(grad.dim() == self.dim(), op, ": expected 'grad_output' to have ", self.dim(),
                " dimensions, got ", grad.sizes());
  return adaptive_pooling(op, self, spatial,
                          grad.sizes().slice(grad.sizes().size() - static_cast<size_t>(spatial)));
}
}  // namespace
Tensor adaptive_max_pool2d_backward(const Tensor& grad_output, const Tensor& self,
                                    const Tensor& indices) {
  const char* op = "adaptive_max_pool2d_backward";
  return max_pooling_backward(op, windows_of(op, self, 2, grad_output), grad_output, self, indices);
}
Tensor adaptive_max_pool3d_backward(const Tensor& grad_output, const Tensor& self,
                                    const Tensor& indices) {
  const char* op = "adaptive_max_pool3d_backward";
  return max_pooling_backward(op, windows_of(op, self, 3, grad_output), grad_output, self, indices);
}

// ---- Average ----

namespace {
Pooling average_windows(const char* op, const Tensor& self, int spatial, IntArrayRef kernel_size,
                        IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                        bool count_include_pad, std::optional<int64_t> divisor_override) {
  LAMELLA_CHECK(!divisor_override || *divisor_override != 0, op,
                ": expected 'divisor_override' not to be 0");
  Pooling p = fixed_pooling(op, self, spatial,
                            {kernel_size, stride, padding, {}, ceil_mode, count_include_pad});
  p.divisor = divisor_override.value_or(0);
  return p;
}
}  // namespace

// Defines an operator and its backward.
#define LAMELLA_AVERAGE_POOL(name, spatial)                                                        \
  Tensor name(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,                     \
              IntArrayRef padding, bool ceil_mode, bool count_include_pad,                         \
              std::optional<int64_t> divisor_override) {                                           \
    return average_pooling(#name,                                                                  \
                           average_windows(#name, self, spatial, kernel_size, stride, padding,     \
                                           ceil_mode, count_include_pad, divisor_override),        \
                           self);                                                                  \
  }                                                                                                \
  Tensor name##_backward(const Tensor& grad_output, const Tensor& self, IntArrayRef kernel_size,   \
                         IntArrayRef stride, IntArrayRef padding, bool ceil_mode,                  \
                         bool count_include_pad, std::optional<int64_t> divisor_override) {        \
    return average_pooling_backward(                                                               \
        #name "_backward",                                                                         \
        average_windows(#name "_backward", self, spatial, kernel_size, stride, padding, ceil_mode, \
                        count_include_pad, divisor_override),                                      \
        grad_output, self);                                                                        \
  }
LAMELLA_AVERAGE_POOL(avg_pool2d, 2)
LAMELLA_AVERAGE_POOL(avg_pool3d, 3)

Tensor _adaptive_avg_pool2d(const Tensor& self, IntArrayRef output_size) {
  const char* op = "adaptive_avg_pool2d";
  return average_pooling(op, adaptive_pooling(op, self, 2, output_size), self);
}
Tensor _adaptive_avg_pool3d(const Tensor& self, IntArrayRef output_size) {
  const char* op = "adaptive_avg_pool3d";
  return average_pooling(op, adaptive_pooling(op, self, 3, output_size), self);
}
Tensor _adaptive_avg_pool2d_backward(const Tensor& grad_output, const Tensor& self) {
  const char* op = "adaptive_avg_pool2d_backward";
  return average_pooling_backward(op, windows_of(op, self, 2, grad_output), grad_output, self);
}
Tensor _adaptive_avg_pool3d_backward(const Tensor& grad_output, const Tensor& self) {
  const char* op = "adaptive_avg_pool3d_backward";
  return average_pooling_backward(op, windows_of(op, self, 3, grad_output), grad_output, self);
}

}  // namespace lamella::native
