// Kernels of random numbers on a GPU.
#include "lamella/cuda/kernels/random.h"

using namespace lamella;
using namespace lamella::cuda;

LAMELLA_RANDOM_KERNELS(LAMELLA_GLOBAL)
