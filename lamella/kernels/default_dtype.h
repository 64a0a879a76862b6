// The dtype of factories that are called without one: float32 until it is set.
#pragma once
#include "lamella/core/macros.h"
#include "lamella/core/scalar_type.h"

namespace lamella {

LAMELLA_PRIVATE_API ScalarType get_default_dtype();
// Throws TypeError for anything but a floating-point type.
LAMELLA_PRIVATE_API void set_default_dtype(ScalarType dtype);
// complex64 for float32 and smaller, complex128 for float64.
ScalarType get_default_complex_dtype();

}  // namespace lamella
