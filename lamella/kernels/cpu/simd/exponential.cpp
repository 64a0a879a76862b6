// Exponentials, hyperbolic functions and the logistic function.
#include "lamella/kernels/cpu/simd/exponential.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
LAMELLA_MATH1(exp, v_exp(a));
LAMELLA_MATH1(exp2, v_exp2(a));
LAMELLA_MATH1(expm1, v_expm1(a));
LAMELLA_MATH1(sinh, v_sinh(a));
LAMELLA_MATH1(cosh, v_cosh(a));
LAMELLA_MATH1(tanh, v_tanh(a));
LAMELLA_MATH1(sigmoid, v_sigmoid(a));

}  // namespace lamella::native
