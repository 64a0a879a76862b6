// liblamella_blas.so, loaded at its first use.
#pragma once
#include "lamella/kernels/blas/blas.h"

namespace lamella::native {

// Looked for in the folder that LAMELLA_LIBRARY_PATH names, beside the library that this code is
// in, and where the system looks. Throws Error with what the loader said if it is nowhere.
const lamella_blas& blas_library();

}  // namespace lamella::native
