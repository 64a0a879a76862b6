// Exponentials, hyperbolic functions and the logistic function.
#include "lamella/kernels/cpu/simd/exponential.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

LAMELLA_VEC1(Exp, v_exp(a))
LAMELLA_VEC1(Exp2, v_exp2(a))
LAMELLA_VEC1(Expm1, v_expm1(a))
LAMELLA_VEC1(Sinh, v_sinh(a))
LAMELLA_VEC1(Cosh, v_cosh(a))
LAMELLA_VEC1(Tanh, v_tanh(a))
LAMELLA_VEC1(Sigmoid, v_sigmoid(a))

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_MATH1(exp, Exp);
LAMELLA_MATH1(exp2, Exp2);
LAMELLA_MATH1(expm1, Expm1);
LAMELLA_MATH1(sinh, Sinh);
LAMELLA_MATH1(cosh, Cosh);
LAMELLA_MATH1(tanh, Tanh);
LAMELLA_MATH1(sigmoid, Sigmoid);

}  // namespace lamella::native
