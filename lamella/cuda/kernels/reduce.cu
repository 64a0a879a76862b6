// Kernels of reductions on a GPU: reduce_sum_f32.
#include "lamella/cuda/kernels/reduce.h"

using namespace lamella::cuda;

LAMELLA_REDUCE_KERNELS(LAMELLA_BLOCK_KERNEL)
