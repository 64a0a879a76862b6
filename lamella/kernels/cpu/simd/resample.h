// Loops of interpolation and padding, float32 and float64, one set for each CPU capability.
//
// Note [Lines of a resampling]
//   Tensors are [planes][0][1][2][lanes], as in pooling. An output line is a weighted sum of up to
//   four input lines that were resampled along dimension 2 first; those are cached, because the
//   next output lines often need them again. Gradients go the reverse way: the contributions to an
//   input line are summed first, and spread along dimension 2 once.
#pragma once
#include "lamella/core/scalar_type.h"
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// The elements that output position o of a dimension reads: first[o], or, unless `second` is null,
// (1 - share[o]) * first[o] + share[o] * second[o].
struct ResampleTable {
  int64_t in, out;
  const int64_t* first;
  const int64_t* second;
  const double* share;
};
struct ResampleLines {
  ScalarType dtype;
  int64_t lanes;
  ResampleTable axes[3];
  const void* from;
  void* to;
};
using resample_fn = void (*)(const ResampleLines& lines, int64_t begin, int64_t end);

// Computes output lines [begin, end) of `to`, counted over all planes, from `from`.
LAMELLA_KERNEL(resample_fn, resample_on);

// Adds the contributions of the outputs' gradients `from` to the inputs' gradients `to`, for planes
// [begin, end).
LAMELLA_KERNEL(resample_fn, resample_backward_on);

}  // namespace lamella::native
