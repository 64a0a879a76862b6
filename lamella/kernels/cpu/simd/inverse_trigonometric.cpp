// Inverse trigonometric and inverse hyperbolic functions.
#include "lamella/kernels/cpu/simd/inverse_trigonometric.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

LAMELLA_VEC1(Asin, v_asin(a))
LAMELLA_VEC1(Acos, v_acos(a))
LAMELLA_VEC1(Atan, v_atan(a))
LAMELLA_VEC1(Asinh, v_asinh(a))
LAMELLA_VEC1(Acosh, v_acosh(a))
LAMELLA_VEC1(Atanh, v_atanh(a))
LAMELLA_VEC2(Atan2, v_atan2(a, b))

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_MATH1(asin, Asin);
LAMELLA_MATH1(acos, Acos);
LAMELLA_MATH1(atan, Atan);
LAMELLA_MATH1(asinh, Asinh);
LAMELLA_MATH1(acosh, Acosh);
LAMELLA_MATH1(atanh, Atanh);
LAMELLA_POINTWISE(atan2, vector_table<Atan2, 2>("atan2", 0));

}  // namespace lamella::native
