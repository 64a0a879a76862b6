// torch::special::erf and the other operators named torch::special_….
#pragma once
#include <ATen/Functions.h>

#include "lamella/core/for_each.h"

#define LAMELLA_NAMED(name)                                        \
  template <class... A>                                            \
  decltype(auto) name(A&&... arguments) {                          \
    return lamella::special_##name(std::forward<A>(arguments)...); \
  }
namespace torch::special {
LAMELLA_FOR_EACH(LAMELLA_NAMED, digamma, entr, erf, erfc, erfcx, erfinv, exp2, expit, expm1,
                 gammaln, i0, i0e, i1, i1e, log1p)
LAMELLA_FOR_EACH(LAMELLA_NAMED, log_ndtr, log_softmax, logit, logsumexp, multigammaln, ndtr, ndtri,
                 polygamma, psi, round, sinc, softmax, xlog1py, xlogy, zeta)
}  // namespace torch::special
#undef LAMELLA_NAMED
