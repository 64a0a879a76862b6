// liblamella_blas.so, loaded at its first use.
#pragma once
#include "lamella/core/macros.h"
#include "lamella/kernels/blas/blas.h"

namespace lamella::native {

// Looked for in the folder that LAMELLA_LIBRARY_PATH names, beside the library that this code is
// in, and where the system looks. Throws Error with what the loader said if it is nowhere.
LAMELLA_PRIVATE_API const lamella_blas& blas_library();

// If it is loaded: waits for calls into it, and holds back those that other threads begin later. To
// be called once, when the process ends.
LAMELLA_PRIVATE_API void close_blas_library();

}  // namespace lamella::native
