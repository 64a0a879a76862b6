// Kernels of comparisons and logic on a GPU.
#include "lamella/cuda/kernels/functions.h"
#include "lamella/cuda/kernels/image.h"

using namespace lamella;
using namespace lamella::cuda;

LAMELLA_LOGIC_LOOPS(LAMELLA_KERNELS)
