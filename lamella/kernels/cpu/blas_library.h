// liblamella_blas.so, loaded at its first use.
#pragma once
#include "lamella/core/macros.h"
#include "lamella/kernels/blas/blas.h"

namespace lamella::native {

// Searched in the folder that LAMELLA_LIBRARY_PATH names, next to the library that contains this
// code, and in the system's paths. Throws Error with the loader's message if it is not found.
LAMELLA_PRIVATE_API const lamella_blas& blas_library();

// If the library is loaded, waits for calls into it and blocks later ones of other threads. Must be
// called once, when the process ends.
LAMELLA_PRIVATE_API void close_blas_library();

}  // namespace lamella::native
