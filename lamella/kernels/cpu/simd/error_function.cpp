// The error function, the normal distribution, their inverses, and gelu.
#include "lamella/kernels/cpu/simd/error_function.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

LAMELLA_VEC1(Erf, v_erf(a))
LAMELLA_VEC1(Erfc, v_erfc(a))
LAMELLA_VEC1(Erfcx, v_erfcx(a))
LAMELLA_VEC1(LogNdtr, v_log_ndtr(a))
LAMELLA_VEC1(Ndtri, v_ndtri(a))
LAMELLA_VEC1(Erfinv, v_erfinv(a))
LAMELLA_VEC1(Gelu, v_gelu(a))

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_POINTWISE(erf, vector_table<Erf, 1>("erf", 0));
LAMELLA_POINTWISE(erfc, vector_table<Erfc, 1>("erfc", 0));
LAMELLA_POINTWISE(erfcx, vector_table<Erfcx, 1>("special_erfcx", 0));
LAMELLA_POINTWISE(log_ndtr, vector_table<LogNdtr, 1>("special_log_ndtr", 0));
LAMELLA_POINTWISE(ndtri, vector_table<Ndtri, 1>("special_ndtri", 0));
LAMELLA_POINTWISE(erfinv, vector_table<Erfinv, 1>("erfinv", 0));
LAMELLA_POINTWISE(gelu, vector_table<Gelu, 1>("gelu", 0));

}  // namespace lamella::native
