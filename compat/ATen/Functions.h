// at::add, at::empty and all other functions.
#pragma once
#include <ATen/core/Tensor.h>

namespace at {
// Facts of tensors, which are functions as well here. c10::is_complex is a class over types.
using lamella::is_complex;
using lamella::is_floating_point;
inline bool is_complex(const Tensor& tensor) { return tensor.is_complex(); }
inline bool is_floating_point(const Tensor& tensor) { return tensor.is_floating_point(); }
inline bool is_signed(const Tensor& tensor) { return tensor.is_signed(); }

// Factories with a place for names of dimensions, which tensors do not have here.
#define LAMELLA_UNNAMED(name)                                                                 \
  using lamella::name;                                                                        \
  LAMELLA_LAZY Tensor name(IntArrayRef size, std::nullopt_t, std::optional<ScalarType> dtype, \
                           std::optional<Layout> layout, std::optional<Device> device,        \
                           std::optional<bool> pin_memory) {                                  \
    return lamella::name(size, dtype, layout, device, pin_memory);                            \
  }
LAMELLA_UNNAMED(zeros)
LAMELLA_UNNAMED(ones)
LAMELLA_UNNAMED(rand)
LAMELLA_UNNAMED(randn)
#undef LAMELLA_UNNAMED
}  // namespace at
