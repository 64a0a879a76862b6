// Loops of pooling, one set for each CPU capability.
//
// Note [Rows of a pooling]
//   Tensors are [planes][0][1][2][lanes]: row-major tensors have one lane and a plane for each
//   channel; if the channels are innermost, they are the lanes. A vector holds neighbouring lanes,
//   or neighbouring windows if there is one lane. Averages of one lane first add the lines of a
//   window, and then the columns of the sum.
#pragma once
#include "lamella/core/scalar_type.h"
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// The input positions that one output position covers in one dimension.
struct PoolRange {
  int64_t begin, end;  // inside the input
  int64_t step;
  int64_t count;  // positions that an average divides by

  bool operator==(const PoolRange&) const = default;
};

// Consecutive windows along dimension 2 of equal size, whose starts are `stride` apart.
struct PoolSegment {
  int64_t first, count, stride;
  PoolRange range;  // of the first window
  int64_t taps() const { return (range.end - range.begin + range.step - 1) / range.step; }
};

struct PoolRows {
  ScalarType dtype;  // of `from` and `to`
  int64_t planes, lanes, in[3], out[3];
  const PoolRange* ranges[3];  // out[d] of them
  int64_t divisor;             // if not 0, averages divide by it instead of the ranges' counts
  const void* from;
  void* to;
  int64_t* indices;  // of the maxima, counted in the plane
  // For maxima of float32 or float64 without indices, of one lane, in place of ranges[2].
  const PoolSegment* segments = nullptr;
  size_t segment_count = 0;
};

// For rows [begin, end) of windows along dimension 2; each plane has out[0] * out[1] rows.
// Maxima are of float32, float64, int32 (for planes of less than 2^31 elements) or int64; averages
// of float32, float64 or int64.
using pool_rows_fn = void (*)(const PoolRows& rows, int64_t begin, int64_t end);
LAMELLA_KERNEL(pool_rows_fn, max_pool_on);
LAMELLA_KERNEL(pool_rows_fn, average_pool_on);

// Adds the gradients `from` of averages to the inputs' `to`, float32 or float64, for lanes
// [begin, end), counted over all planes.
LAMELLA_KERNEL(pool_rows_fn, average_pool_backward_on);

}  // namespace lamella::native
