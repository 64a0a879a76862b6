// Kernels over rows of float32, float64, float16 and bfloat16, one set for each CPU capability.
#pragma once
#include "lamella/core/scalar_type.h"
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// Softmax, or its logarithm, of slices [begin, end): slice i has `size` elements, `inner` apart,
// from x + (i / inner) * size * inner + i % inner on. With inner 1 slices are rows.
using softmax_fn = void (*)(ScalarType dtype, const void* x, void* y, int64_t size, int64_t inner,
                            int64_t begin, int64_t end, bool logarithm);
LAMELLA_KERNEL(softmax_fn, softmax_on);

// x = y (grad - sum(grad y)) over each slice, where y is softmax's result; with `logarithm`
// x = grad - exp(y) sum(grad). Slices as above.
using softmax_backward_fn = void (*)(ScalarType dtype, const void* grad, const void* y, void* x,
                                     int64_t size, int64_t inner, int64_t begin, int64_t end,
                                     bool logarithm);
LAMELLA_KERNEL(softmax_backward_fn, softmax_backward_on);

// y = (x - mean) * rstd * weight + bias for rows [begin, end) of `size`; weight and bias are float
// for the small types, else of x's type, and may be null. mean is null for an RMS norm, which
// subtracts nothing. mean and rstd receive one number per row, in the type of weight.
struct NormRows {
  ScalarType dtype;
  const void* x;
  void* y;
  const void* weight;
  const void* bias;
  void* mean;
  void* rstd;
  int64_t size;
  double eps;
};
using norm_fn = void (*)(const NormRows& rows, int64_t begin, int64_t end);
LAMELLA_KERNEL(norm_fn, norm_on);

}  // namespace lamella::native
