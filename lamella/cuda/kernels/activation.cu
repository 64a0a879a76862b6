// Kernels of bounds and activations on a GPU.
#include "lamella/cuda/kernels/activations.h"
#include "lamella/cuda/kernels/image.h"

using namespace lamella;
using namespace lamella::cuda;

LAMELLA_ACTIVATION_LOOPS(LAMELLA_KERNELS)
