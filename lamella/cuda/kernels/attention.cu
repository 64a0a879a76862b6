// Kernels of attention on a GPU, by dtype and width of heads: attention_f16_64.
#include "lamella/cuda/kernels/attention.h"

using namespace lamella::cuda;

LAMELLA_ATTENTION_KERNELS
