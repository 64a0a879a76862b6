// Sine, cosine and tangent.
#include "lamella/kernels/cpu/simd/trigonometric.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

LAMELLA_VEC1(Sin, v_sin(a))
LAMELLA_VEC1(Cos, v_cos(a))
LAMELLA_VEC1(Tan, v_tan(a))

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_MATH1(sin, Sin);
LAMELLA_MATH1(cos, Cos);
LAMELLA_MATH1(tan, Tan);

}  // namespace lamella::native
