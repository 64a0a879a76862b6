// Kernels of pooling, sliding blocks, padding and interpolation on a GPU.
#include "lamella/cuda/kernels/windows.h"

using namespace lamella::cuda;

LAMELLA_WINDOW_KERNELS(LAMELLA_GLOBAL)
