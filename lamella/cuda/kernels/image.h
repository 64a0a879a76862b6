// The kernels of an image, by the names of their loops and types: LAMELLA_x_LOOPS(LAMELLA_KERNELS)
// defines add_f32 and others.
#pragma once
#include "lamella/cuda/kernels/pointwise.h"
#include "lamella/cuda/kernels/pointwise_table.h"

#define LAMELLA_KERNEL(loop, F, n, T, suffix) \
  LAMELLA_GLOBAL(loop##_##suffix, PointwiseParameters, pointwise<F<T>, T, n>)
#define LAMELLA_KERNELS(loop, F, n, result, scalars, types, accepts) \
  LAMELLA_TYPES_##types(LAMELLA_KERNEL, loop, F, n)
