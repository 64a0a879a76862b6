// The kernels of an image, by the names of their loops and types: LAMELLA_x_LOOPS(LAMELLA_KERNELS)
// defines add_f32 and others.
#pragma once
#include "lamella/cuda/kernels/pointwise_table.h"

#define LAMELLA_KERNEL(loop, F, n, T, suffix)                                                 \
  extern "C" __global__ void loop##_##suffix(const __grid_constant__ PointwiseParameters p) { \
    pointwise<F<T>, T, n>(p, int64_t(blockIdx.x) * blockDim.x + threadIdx.x,                  \
                          int64_t(gridDim.x) * blockDim.x);                                   \
  }
#define LAMELLA_KERNELS(loop, F, n, result, scalars, types, accepts) \
  LAMELLA_TYPES_##types(LAMELLA_KERNEL, loop, F, n)
