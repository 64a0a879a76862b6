// torch::linalg::inv and the other operators named torch::linalg_….
#pragma once
#include <ATen/Functions.h>

#define LAMELLA_NAMED(name)                                       \
  template <class... A>                                           \
  decltype(auto) name(A&&... arguments) {                         \
    return lamella::linalg_##name(std::forward<A>(arguments)...); \
  }
namespace torch::linalg {
LAMELLA_NAMED(cholesky)
LAMELLA_NAMED(cholesky_ex)
LAMELLA_NAMED(cond)
LAMELLA_NAMED(cross)
LAMELLA_NAMED(det)
LAMELLA_NAMED(diagonal)
LAMELLA_NAMED(eig)
LAMELLA_NAMED(eigh)
LAMELLA_NAMED(eigvals)
LAMELLA_NAMED(eigvalsh)
LAMELLA_NAMED(inv)
LAMELLA_NAMED(inv_ex)
LAMELLA_NAMED(lstsq)
LAMELLA_NAMED(lu)
LAMELLA_NAMED(lu_factor)
LAMELLA_NAMED(lu_factor_ex)
LAMELLA_NAMED(lu_solve)
LAMELLA_NAMED(matmul)
LAMELLA_NAMED(matrix_exp)
LAMELLA_NAMED(matrix_norm)
LAMELLA_NAMED(matrix_power)
LAMELLA_NAMED(matrix_rank)
LAMELLA_NAMED(multi_dot)
LAMELLA_NAMED(norm)
LAMELLA_NAMED(pinv)
LAMELLA_NAMED(qr)
LAMELLA_NAMED(slogdet)
LAMELLA_NAMED(solve)
LAMELLA_NAMED(solve_ex)
LAMELLA_NAMED(solve_triangular)
LAMELLA_NAMED(svd)
LAMELLA_NAMED(svdvals)
LAMELLA_NAMED(tensorinv)
LAMELLA_NAMED(tensorsolve)
LAMELLA_NAMED(vander)
LAMELLA_NAMED(vecdot)
LAMELLA_NAMED(vector_norm)
}  // namespace torch::linalg
#undef LAMELLA_NAMED
