// at::native: composite kernels, callable directly.
#pragma once
#include <ATen/Functions.h>

#include "lamella/api/composite.h"

namespace at::native {
using lamella::composite::contiguous;
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
}  // namespace at::native
