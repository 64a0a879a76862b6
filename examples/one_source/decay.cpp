// One operator for Lamella, PyTorch and JAX: an exponential moving average along the last
// dimension.
//   y[0] = x[0],  y[t] = (1 - rate) * y[t - 1] + rate * x[t]
// main.py builds this file for each library, and compares the results.
#include <cstdint>

// The computation itself, over plain memory.
template <class T>
void decay(const T* x, T* y, int64_t rows, int64_t length, double rate) {
  for (int64_t r = 0; r < rows; ++r) {
    T mean = length > 0 ? x[r * length] : T(0);
    for (int64_t t = 0; t < length; ++t) {
      mean += static_cast<T>(rate) * (x[r * length + t] - mean);
      y[r * length + t] = mean;
    }
  }
}

#ifdef ONE_SOURCE_FOR_JAX
// A typed custom call, for programs of XLA and of Lamella.
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error decay_call(ffi::Buffer<ffi::F32> x, double rate, ffi::ResultBuffer<ffi::F32> y) {
  auto sizes = x.dimensions();
  if (sizes.size() == 0) return ffi::Error::InvalidArgument("decay: expected x with dimensions");
  int64_t length = sizes.back();
  int64_t rows = length == 0 ? 0 : static_cast<int64_t>(x.element_count()) / length;
  decay(x.typed_data(), y->typed_data(), rows, length, rate);
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(Decay, decay_call,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Attr<double>("rate")
                                  .Ret<ffi::Buffer<ffi::F32>>());

#else
// An operator in PyTorch's API, which Lamella's headers provide as well.
#include <ATen/ATen.h>
#include <torch/library.h>

static at::Tensor decay_cpu(const at::Tensor& x, double rate) {
  TORCH_CHECK(x.dim() > 0, "decay: expected x with dimensions, got none");
  at::Tensor given = x.contiguous(), y = at::empty_like(given);
  int64_t length = x.size(-1), rows = length == 0 ? 0 : x.numel() / length;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "decay", [&] {
    decay(given.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>(), rows, length, rate);
  });
  return y;
}

TORCH_LIBRARY(one_source, m) { m.def("decay(Tensor x, float rate) -> Tensor"); }
TORCH_LIBRARY_IMPL(one_source, CPU, m) { m.impl("decay", &decay_cpu); }
#endif
