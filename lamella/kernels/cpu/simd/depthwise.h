// Kernels of convolutions whose groups have few input channels (one if depthwise), float32,
// row-major, one set for each CPU capability.
//
// Note [Padded planes]
//   The input channels of one group of one sample are copied with their padding into a buffer in
//   which the columns are sorted by their remainder modulo the stride. There each tap of the kernel
//   reads adjacent elements for adjacent outputs, and no output is a special case. If rows of
//   outputs fill vectors badly and many output channels read the same plane, the inputs of each tap
//   for all outputs are laid out as one column, and the outputs form a single row.
#pragma once
#include "lamella/core/scalar_type.h"
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// There are three spatial dimensions; leading ones may have size 1.
// src is [batch][groups * inputs][in...], weights [groups * multiplier][inputs][kernel...],
// dst [batch][groups * multiplier][out...].
struct Depthwise {
  int64_t batch, groups, inputs, multiplier;
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
  float* src;
  float* weights;
  const float* bias;  // one number for each channel of dst, or null
  float* dst;
};
using depthwise_fn = void (*)(const Depthwise& problem, int64_t begin, int64_t end);

// Computes dst for groups [begin, end), counted over all samples.
LAMELLA_KERNEL(depthwise_fn, depthwise_forward_on);
// Computes the gradient of the weights of groups [begin, end), summed over all samples.
LAMELLA_KERNEL(depthwise_fn, depthwise_backward_weights_on);

}  // namespace lamella::native
