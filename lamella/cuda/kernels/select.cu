// Kernels of masks, triangles, ranges and searches on a GPU.
#include "lamella/cuda/kernels/select.h"

using namespace lamella::cuda;

LAMELLA_SELECT_KERNELS(LAMELLA_GLOBAL)
