// at::native: composite kernels, callable directly.
#pragma once
#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace at::native {
// `self` if it is dense in the format already, else a copy that is. The format is not Preserve.
inline Tensor contiguous(const Tensor& self, MemoryFormat memory_format) {
  if (self.is_contiguous(memory_format)) return self;
  LAMELLA_CHECK(memory_format != MemoryFormat::Preserve,
                "contiguous: expected 'memory_format' to name an order of the dimensions, got ",
                memory_format);
  return self.clone(memory_format);
}
// Defines a function that calls the method of the same name.
#define LAMELLA_METHOD(name)                                               \
  template <class... A>                                                    \
  decltype(auto) name(const Tensor& self, IntArrayRef size, A&&... args) { \
    return self.name(size, std::forward<A>(args)...);                      \
  }
LAMELLA_METHOD(expand)
LAMELLA_METHOD(resize_)
LAMELLA_METHOD(view)
#undef LAMELLA_METHOD
LAMELLA_LAZY Tensor expand_as(const Tensor& self, const Tensor& other) {
  return self.expand_as(other);
}
// Upsampling as the operators have it; a list of sizes is not a list of scales.
#define LAMELLA_UPSAMPLE(name)                                              \
  LAMELLA_LAZY Tensor name(const Tensor& self, IntArrayRef size,            \
                           std::optional<double> scales_h = std::nullopt,   \
                           std::optional<double> scales_w = std::nullopt) { \
    return at::name(self, size, scales_h, scales_w);                        \
  }
#define LAMELLA_UPSAMPLE_ALIGNED(name)                                               \
  LAMELLA_LAZY Tensor name(const Tensor& self, IntArrayRef size, bool align_corners, \
                           std::optional<double> scales_h = std::nullopt,            \
                           std::optional<double> scales_w = std::nullopt) {          \
    return lamella::Dispatcher::singleton()                                          \
        .findSchemaOrThrow("aten::" #name, "")                                       \
        .typed<Tensor(const Tensor&, IntArrayRef, bool, std::optional<double>,       \
                      std::optional<double>)>()                                      \
        .call(self, size, align_corners, scales_h, scales_w);                        \
  }
LAMELLA_UPSAMPLE(_upsample_nearest_exact2d)
LAMELLA_UPSAMPLE_ALIGNED(_upsample_bilinear2d_aa)
LAMELLA_UPSAMPLE_ALIGNED(_upsample_bicubic2d_aa)
#undef LAMELLA_UPSAMPLE
#undef LAMELLA_UPSAMPLE_ALIGNED
using at::is_nonzero;
LAMELLA_LAZY Tensor _stack(TensorList tensors, int64_t dim) { return at::stack(tensors, dim); }
LAMELLA_LAZY Tensor _stack_cpu(TensorList tensors, int64_t dim) { return at::stack(tensors, dim); }
// Kernels of operators that have one kernel here, by PyTorch's names for each of theirs.
#define LAMELLA_KERNEL(name, op)             \
  template <class... A>                      \
  auto name(A&&... args) {                   \
    return at::op(std::forward<A>(args)...); \
  }
LAMELLA_KERNEL(cpu_equal, equal)
LAMELLA_KERNEL(math_addr, addr)
LAMELLA_KERNEL(math_group_norm, native_group_norm)
LAMELLA_KERNEL(math_mish_backward, mish_backward)
LAMELLA_KERNEL(math_native_layer_norm, native_layer_norm)
LAMELLA_KERNEL(math_silu_backward, silu_backward)
#undef LAMELLA_KERNEL
}  // namespace at::native
