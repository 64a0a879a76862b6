// Kernels of random numbers on a GPU.
#include "lamella/cuda/kernels/random.h"

using namespace lamella;
using namespace lamella::cuda;

#define LAMELLA_KERNEL(name, Parameters, body)                                                \
  extern "C" __global__ void name(const __grid_constant__ Parameters p) {                     \
    body(p, int64_t(blockIdx.x) * blockDim.x + threadIdx.x, int64_t(gridDim.x) * blockDim.x); \
  }
LAMELLA_RANDOM_KERNELS(LAMELLA_KERNEL)
