// Kernels of optimizers on a GPU.
#include "lamella/cuda/kernels/optimizer.h"

using namespace lamella::cuda;

LAMELLA_OPTIMIZER_KERNELS(LAMELLA_GLOBAL)
