// torch::linalg::inv and the other operators named torch::linalg_….
#pragma once
#include <ATen/Functions.h>

#include "lamella/core/for_each.h"

#define LAMELLA_NAMED(name)                                       \
  template <class... A>                                           \
  decltype(auto) name(A&&... arguments) {                         \
    return lamella::linalg_##name(std::forward<A>(arguments)...); \
  }
namespace torch::linalg {
LAMELLA_FOR_EACH(LAMELLA_NAMED, cholesky, cholesky_ex, cond, cross, det, diagonal, eig, eigh,
                 eigvals, eigvalsh, inv, inv_ex, lstsq, lu, lu_factor, lu_factor_ex, lu_solve,
                 matmul, matrix_exp)
LAMELLA_FOR_EACH(LAMELLA_NAMED, matrix_norm, matrix_power, matrix_rank, multi_dot, norm, pinv, qr,
                 slogdet, solve, solve_ex, solve_triangular, svd, svdvals, tensorinv, tensorsolve,
                 vander, vecdot, vector_norm)
}  // namespace torch::linalg
#undef LAMELLA_NAMED
