// Products of vectors, one set of kernels for each CPU capability.
#pragma once
#include "lamella/core/scalar_type.h"
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// The dot product of contiguous vectors of n float32 or float64 elements, or of int32 or int64,
// whose sums wrap.
using dot_fn = void (*)(ScalarType dtype, const void* a, const void* b, int64_t n, void* result);
LAMELLA_KERNEL(dot_fn, dot_on);

}  // namespace lamella::native
