// Distances between the rows of two matrices, float32 and float64, one set for each CPU capability.
//
// Note [Distances by panels]
//   The rows of the second matrix lie in panels made by GemmKernels::pack: a vector holds the same
//   element of neighbouring rows, so that sums along a row do not cross lanes. Gradients are summed
//   over the rows of the second matrix lane by lane, and over the lanes at the end.
#pragma once
#include "lamella/core/scalar_type.h"
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

struct Distances {
  ScalarType dtype;
  double p;
  int64_t columns, others;       // elements of a row; rows of the second matrix
  int64_t panel;                 // rows in a panel
  const void* rows;              // [..., columns] of the first matrix
  const void* panels;            // of the second
  void* out;                     // the distances [..., others]; or the gradient [..., columns]
  const void *grad, *distances;  // [..., others]; read only by the backward
};
using distances_fn = void (*)(const Distances& problem, int64_t begin, int64_t end);

// For rows [begin, end) of the first matrix. The gradient is of an order p > 0.
LAMELLA_KERNEL(distances_fn, distances_on);
LAMELLA_KERNEL(distances_fn, distances_backward_on);

}  // namespace lamella::native
