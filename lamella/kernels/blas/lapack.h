// The decompositions of liblamella_blas.so: OpenBLAS's LAPACK routines.
#pragma once
#include "lamella/kernels/blas/blas.h"

extern const lamella_lapack lamella_lapack_table;
