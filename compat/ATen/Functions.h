// at::add, at::empty and all other functions.
#pragma once
#include <ATen/core/Tensor.h>

#include "lamella/api/from_blob.h"
#include "lamella/api/tensor_of.h"

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

// The functions whose sizes may be symbols, which are plain integers here.
#define LAMELLA_SYMBOLIC(name)                            \
  template <class... A>                                   \
  Tensor name##_symint(IntArrayRef size, A&&... args) {   \
    return lamella::name(size, std::forward<A>(args)...); \
  }
LAMELLA_SYMBOLIC(empty)
LAMELLA_SYMBOLIC(full)
LAMELLA_SYMBOLIC(ones)
LAMELLA_SYMBOLIC(rand)
LAMELLA_SYMBOLIC(randn)
LAMELLA_SYMBOLIC(zeros)
#undef LAMELLA_SYMBOLIC
template <class... A>
Tensor empty_strided_symint(IntArrayRef size, IntArrayRef stride, A&&... args) {
  return lamella::empty_strided(size, stride, std::forward<A>(args)...);
}
#define LAMELLA_SYMBOLIC(name)                                              \
  template <class... A>                                                     \
  Tensor name##_symint(const Tensor& self, IntArrayRef size, A&&... args) { \
    return lamella::name(self, size, std::forward<A>(args)...);             \
  }
LAMELLA_SYMBOLIC(as_strided)
LAMELLA_SYMBOLIC(reshape)
#undef LAMELLA_SYMBOLIC
#define LAMELLA_SYMBOLIC(name)                                    \
  template <class... A>                                           \
  decltype(auto) name##_symint(const Tensor& self, A&&... args) { \
    return lamella::name(self, std::forward<A>(args)...);         \
  }
LAMELLA_SYMBOLIC(narrow)
LAMELLA_SYMBOLIC(repeat_interleave)
LAMELLA_SYMBOLIC(select)
LAMELLA_SYMBOLIC(slice)
LAMELLA_SYMBOLIC(split)
#undef LAMELLA_SYMBOLIC
}  // namespace at
