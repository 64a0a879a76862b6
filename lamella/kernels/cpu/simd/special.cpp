// Gamma and Bessel functions, and others that are made of elementary ones.
#include "lamella/kernels/cpu/simd/special.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

// Parameter: the bound to which the input is clamped; negative: none.
template <class T>
struct Logit {
  T eps;
  explicit Logit(const void* p) : eps(param<T>(p, 0)) {}
  Vec<T> operator()(Vec<T> a) const {
    if (eps >= 0) a = v_at_most(v_at_least(a, eps), 1 - eps);
    return v_logit(a);
  }
};

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_MATH1(sinc, v_sinc(a));
LAMELLA_VEC1(lgamma, "lgamma", v_lgamma(a));
LAMELLA_VEC1(digamma, "digamma", v_digamma(a));
LAMELLA_VEC1(trigamma, "polygamma", v_trigamma(a));
LAMELLA_VEC1(i0, "i0", v_i0(a));
LAMELLA_VEC1(i0e, "special_i0e", v_i0e(a));
LAMELLA_VEC1(i1, "special_i1", v_i1(a));
LAMELLA_VEC1(i1e, "special_i1e", v_i1e(a));
LAMELLA_VEC1(entr, "special_entr", v_entr(a));
LAMELLA_VEC2(xlogy, "xlogy", v_xlogy(a, b));
LAMELLA_VEC2(xlog1py, "special_xlog1py", v_xlog1py(a, b));
LAMELLA_POINTWISE(logit, vector_table<Logit, 1>("logit", 1));

}  // namespace lamella::native
