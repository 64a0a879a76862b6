// Kernels of indexing on a GPU.
#include "lamella/cuda/kernels/index.h"

using namespace lamella::cuda;

LAMELLA_INDEX_KERNELS(LAMELLA_GLOBAL)
