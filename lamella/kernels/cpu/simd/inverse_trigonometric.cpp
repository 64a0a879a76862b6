// Inverse trigonometric and inverse hyperbolic functions.
#include "lamella/kernels/cpu/simd/inverse_trigonometric.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
LAMELLA_MATH1(asin, v_asin(a));
LAMELLA_MATH1(acos, v_acos(a));
LAMELLA_MATH1(atan, v_atan(a));
LAMELLA_MATH1(asinh, v_asinh(a));
LAMELLA_MATH1(acosh, v_acosh(a));
LAMELLA_MATH1(atanh, v_atanh(a));
LAMELLA_VEC2(atan2, "atan2", v_atan2(a, b));

}  // namespace lamella::native
