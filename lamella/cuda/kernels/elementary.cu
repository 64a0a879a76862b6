// Kernels of elementary functions on a GPU, by the names of their loops and types: add_f32.
#include "lamella/cuda/kernels/elementary.h"

using namespace lamella::cuda;

#define LAMELLA_KERNEL(loop, F, n, first, T, suffix)                                          \
  extern "C" __global__ void loop##_##suffix(const __grid_constant__ PointwiseParameters p) { \
    pointwise<F<T>, T, n, first>(p, int64_t(blockIdx.x) * blockDim.x + threadIdx.x,           \
                                 int64_t(gridDim.x) * blockDim.x);                            \
  }
LAMELLA_ELEMENTARY_KERNELS(LAMELLA_KERNEL)
