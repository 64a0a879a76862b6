// Kernels of factorisations on a GPU, by kind and type: factor_lu_f32.
#include "lamella/cuda/kernels/factor.h"

LAMELLA_FACTOR_KERNELS
