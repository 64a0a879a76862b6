// Kernels of scans on a GPU.
#include "lamella/cuda/kernels/scan.h"

using namespace lamella::cuda;

LAMELLA_SCAN_KERNELS(LAMELLA_BLOCK_KERNEL)
