// Convolutions by oneDNN.
#pragma once
#include "lamella/kernels/blas/blas.h"

namespace lamella::blas {

// Implements lamella_blas::convolution.
int32_t convolution(const lamella_convolution* problem, char* message, uint64_t size);

}  // namespace lamella::blas
