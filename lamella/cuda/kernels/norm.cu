// Kernels of softmax and norms on a GPU.
#include "lamella/cuda/kernels/norm.h"

using namespace lamella::cuda;

LAMELLA_NORM_KERNELS(LAMELLA_BLOCK_KERNEL)
