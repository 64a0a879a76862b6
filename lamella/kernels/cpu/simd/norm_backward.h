// The backward of normalised rows, float32 and float64, one set for each CPU capability.
#pragma once
#include "lamella/core/scalar_type.h"
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// For rows [begin, end) of `size` elements, with g = dy * weight and n = (x - mean) * rstd:
//   dx = rstd * (g - average(g) - n * average(g * n)), without average(g) for an RMS norm;
//   dweight += dy * n, dbias += dy, summed over the rows; both are computed, or neither.
// All arrays have `dtype`. weight, mean (for an RMS norm), dx, dweight and dbias may be null.
struct NormBackward {
  ScalarType dtype;
  const void* dy;
  const void* x;
  const void* weight;
  const void* mean;
  const void* rstd;
  void* dx;
  void* dweight;
  void* dbias;
  int64_t size;
};
using norm_backward_fn = void (*)(const NormBackward& rows, int64_t begin, int64_t end);
LAMELLA_KERNEL(norm_backward_fn, norm_backward_on);

}  // namespace lamella::native
