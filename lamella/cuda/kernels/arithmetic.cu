// Kernels of arithmetic on a GPU.
#include "lamella/cuda/kernels/functions.h"
#include "lamella/cuda/kernels/image.h"

using namespace lamella;
using namespace lamella::cuda;

LAMELLA_ARITHMETIC_LOOPS(LAMELLA_KERNELS)
