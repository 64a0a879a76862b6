// Kernels of sorting on a GPU.
#include "lamella/cuda/kernels/radix.h"
#include "lamella/cuda/kernels/sort.h"

using namespace lamella::cuda;

LAMELLA_TILE_KERNELS
LAMELLA_RADIX_KERNELS
