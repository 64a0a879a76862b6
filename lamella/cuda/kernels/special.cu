// Kernels of special functions, powers and remainders on a GPU.
#include "lamella/cuda/kernels/image.h"
#include "lamella/cuda/kernels/special.h"

using namespace lamella;
using namespace lamella::cuda;

LAMELLA_SPECIAL_LOOPS(LAMELLA_KERNELS)
