// The decompositions of liblamella_blas.so: LAPACK as OpenBLAS has it.
#pragma once
#include "lamella/kernels/blas/blas.h"

extern const lamella_lapack lamella_lapack_table;
