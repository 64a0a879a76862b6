// Logarithms.
#include "lamella/kernels/cpu/simd/logarithm.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
LAMELLA_MATH1(log, v_log(a));
LAMELLA_MATH1(log2, v_log2(a));
LAMELLA_MATH1(log10, v_log10(a));
LAMELLA_MATH1(log1p, v_log1p(a));

}  // namespace lamella::native
