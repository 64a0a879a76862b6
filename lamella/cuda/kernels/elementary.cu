// Kernels of elementary functions on a GPU.
#include "lamella/cuda/kernels/elementary.h"
#include "lamella/cuda/kernels/image.h"

using namespace lamella;
using namespace lamella::cuda;

LAMELLA_ELEMENTARY_LOOPS(LAMELLA_KERNELS)
