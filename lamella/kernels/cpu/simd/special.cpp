// Gamma and Bessel functions, and others that are made of elementary ones.
#include "lamella/kernels/cpu/simd/special.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

LAMELLA_VEC1(Sinc, v_sinc(a))
LAMELLA_VEC1(Lgamma, v_lgamma(a))
LAMELLA_VEC1(Digamma, v_digamma(a))
LAMELLA_VEC1(Trigamma, v_trigamma(a))
LAMELLA_VEC1(I0, v_i0(a))
LAMELLA_VEC1(I0E, v_i0e(a))
LAMELLA_VEC1(I1, v_i1(a))
LAMELLA_VEC1(I1E, v_i1e(a))
LAMELLA_VEC1(Entr, v_entr(a))
LAMELLA_VEC2(Xlogy, v_xlogy(a, b))
LAMELLA_VEC2(Xlog1Py, v_xlog1py(a, b))
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

LAMELLA_MATH1(sinc, Sinc);
LAMELLA_POINTWISE(lgamma, vector_table<Lgamma, 1>("lgamma", 0));
LAMELLA_POINTWISE(digamma, vector_table<Digamma, 1>("digamma", 0));
LAMELLA_POINTWISE(trigamma, vector_table<Trigamma, 1>("polygamma", 0));
LAMELLA_POINTWISE(i0, vector_table<I0, 1>("i0", 0));
LAMELLA_POINTWISE(i0e, vector_table<I0E, 1>("special_i0e", 0));
LAMELLA_POINTWISE(i1, vector_table<I1, 1>("special_i1", 0));
LAMELLA_POINTWISE(i1e, vector_table<I1E, 1>("special_i1e", 0));
LAMELLA_POINTWISE(entr, vector_table<Entr, 1>("special_entr", 0));
LAMELLA_POINTWISE(xlogy, vector_table<Xlogy, 2>("xlogy", 0));
LAMELLA_POINTWISE(xlog1py, vector_table<Xlog1Py, 2>("special_xlog1py", 0));
LAMELLA_POINTWISE(logit, vector_table<Logit, 1>("logit", 1));

}  // namespace lamella::native
