// Declares the operators of the namespace, without kernels, and defines the function that calls
// one.
#include "tests/seeds/myops.h"

#include <torch/library.h>

TORCH_LIBRARY(myops, m) { m.def("myadd(Tensor self, Tensor other) -> Tensor"); }

torch::Tensor myadd(const torch::Tensor& self, const torch::Tensor& other) {
  static auto op =
      torch::Dispatcher::singleton().findSchemaOrThrow("myops::myadd", "").typed<decltype(myadd)>();
  return op.call(self, other);
}
