// Sine, cosine and tangent.
#include "lamella/kernels/cpu/simd/trigonometric.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
LAMELLA_MATH1(sin, v_sin(a));
LAMELLA_MATH1(cos, v_cos(a));
LAMELLA_MATH1(tan, v_tan(a));

}  // namespace lamella::native
