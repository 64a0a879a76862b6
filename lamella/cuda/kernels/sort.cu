// Kernels of sorting on a GPU.
#include "lamella/cuda/kernels/sort.h"

using namespace lamella::cuda;

LAMELLA_MERGE_KERNELS(LAMELLA_GLOBAL)
LAMELLA_TILE_KERNELS
