// torch::special::erf and the other operators named torch::special_….
#pragma once
#include <ATen/Functions.h>

#define LAMELLA_NAMED(name)                                        \
  template <class... A>                                            \
  decltype(auto) name(A&&... arguments) {                          \
    return lamella::special_##name(std::forward<A>(arguments)...); \
  }
namespace torch::special {
LAMELLA_NAMED(digamma)
LAMELLA_NAMED(entr)
LAMELLA_NAMED(erf)
LAMELLA_NAMED(erfc)
LAMELLA_NAMED(erfcx)
LAMELLA_NAMED(erfinv)
LAMELLA_NAMED(exp2)
LAMELLA_NAMED(expit)
LAMELLA_NAMED(expm1)
LAMELLA_NAMED(gammaln)
LAMELLA_NAMED(i0)
LAMELLA_NAMED(i0e)
LAMELLA_NAMED(i1)
LAMELLA_NAMED(i1e)
LAMELLA_NAMED(log1p)
LAMELLA_NAMED(log_ndtr)
LAMELLA_NAMED(log_softmax)
LAMELLA_NAMED(logit)
LAMELLA_NAMED(logsumexp)
LAMELLA_NAMED(multigammaln)
LAMELLA_NAMED(ndtr)
LAMELLA_NAMED(ndtri)
LAMELLA_NAMED(polygamma)
LAMELLA_NAMED(psi)
LAMELLA_NAMED(round)
LAMELLA_NAMED(sinc)
LAMELLA_NAMED(softmax)
LAMELLA_NAMED(xlog1py)
LAMELLA_NAMED(xlogy)
LAMELLA_NAMED(zeta)
}  // namespace torch::special
#undef LAMELLA_NAMED
