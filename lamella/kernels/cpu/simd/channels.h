// Statistics and affine maps of channels, float32 and float64, one set for each CPU capability.
#pragma once
#include "lamella/core/scalar_type.h"
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// Element i of channel c of sample o is at (o * channels + c) * inner + i. Arrays with one number
// per channel have the element type.
struct Planes {
  ScalarType dtype;
  int64_t outer, channels, inner;
};

// mean[c] and the biased variance var[c] of channels [begin, end).
using channel_moments_fn = void (*)(const Planes& p, const void* x, void* mean, void* var,
                                    int64_t begin, int64_t end);
LAMELLA_KERNEL(channel_moments_fn, channel_moments_on);

// sum[c] = the sum of dy, dot[c] = the sum of dy * (x - mean[c]), for channels [begin, end).
using channel_sums_fn = void (*)(const Planes& p, const void* dy, const void* x, const void* mean,
                                 void* sum, void* dot, int64_t begin, int64_t end);
LAMELLA_KERNEL(channel_sums_fn, channel_sums_on);

// out = b[c] * x + k[c], plus a[c] * dy unless dy is null, for rows [begin, end): row r is channel
// r % channels of sample r / channels.
struct ChannelAffine {
  const void* x;
  const void* dy;
  void* out;
  const void* a;
  const void* b;
  const void* k;
};
using channel_affine_fn = void (*)(const Planes& p, const ChannelAffine& f, int64_t begin,
                                   int64_t end);
LAMELLA_KERNEL(channel_affine_fn, channel_affine_on);

}  // namespace lamella::native
