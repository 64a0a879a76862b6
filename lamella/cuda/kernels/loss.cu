// Kernels of losses on a GPU.
#include "lamella/cuda/kernels/loss.h"

using namespace lamella::cuda;

LAMELLA_LOSS_KERNELS(LAMELLA_BLOCK_KERNEL)
