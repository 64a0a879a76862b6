// Logarithms.
#include "lamella/kernels/cpu/simd/logarithm.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

LAMELLA_VEC1(Log, v_log(a))
LAMELLA_VEC1(Log2, v_log2(a))
LAMELLA_VEC1(Log10, v_log10(a))
LAMELLA_VEC1(Log1p, v_log1p(a))

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_MATH1(log, Log);
LAMELLA_MATH1(log2, Log2);
LAMELLA_MATH1(log10, Log10);
LAMELLA_MATH1(log1p, Log1p);

}  // namespace lamella::native
