// Kernels of matrix products on a GPU, by their types: matmul_f32.
#include "lamella/cuda/kernels/matmul.h"

using namespace lamella::cuda;

LAMELLA_MATMUL_KERNELS
