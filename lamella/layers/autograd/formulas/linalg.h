// Derivatives of linear algebra. Gradients that may be undefined are named so; a function whose
// gradients are all undefined gives an undefined tensor.
//
// Note [Decompositions with a choice]
//   Factors that are only determined up to a sign, phase or order of equal values have a gradient
//   only where the loss does not depend on that choice. Distances between equal singular values or
//   eigenvalues divide by zero, as in PyTorch.
#pragma once
#include <array>
#include <string_view>
#include <tuple>

#include "lamella/api/tensor.h"

namespace lamella {

Tensor det_backward(const Tensor& grad, const Tensor& A, const Tensor& LU, const Tensor& pivots);
Tensor det_forward(const Tensor& A_t, const Tensor& A_p, const Tensor& LU, const Tensor& pivots,
                   const Tensor& result);
// Either gradient may be undefined.
Tensor slogdet_backward(const Tensor& grad_sign, const Tensor& grad_logabsdet, const Tensor& A,
                        const Tensor& sign);
Tensor sign_forward(const Tensor& A_t, const Tensor& A_p, const Tensor& sign);
Tensor logabsdet_forward(const Tensor& A_t, const Tensor& A_p);

Tensor inverse_backward(const Tensor& grad, const Tensor& inverse);
Tensor inverse_forward(const Tensor& A_t, const Tensor& inverse);

// (A, B) of A X = B, or X A = B.
std::tuple<Tensor, Tensor> solve_backward(const Tensor& grad, const Tensor& A, const Tensor& LU,
                                          const Tensor& pivots, const Tensor& result, bool left,
                                          std::array<bool, 2> wanted);
Tensor solve_forward(const Tensor& A_t, const Tensor& A_p, const Tensor& B_t, const Tensor& LU,
                     const Tensor& pivots, const Tensor& result, bool left);
std::tuple<Tensor, Tensor> solve_triangular_backward(const Tensor& grad, const Tensor& A,
                                                     const Tensor& result, bool upper, bool left,
                                                     bool unitriangular,
                                                     std::array<bool, 2> wanted);
Tensor solve_triangular_forward(const Tensor& A_t, const Tensor& A_p, const Tensor& B_t,
                                const Tensor& result, bool upper, bool left, bool unitriangular);

Tensor cholesky_backward(const Tensor& grad, const Tensor& factor, bool upper);
Tensor cholesky_forward(const Tensor& A_t, const Tensor& factor, bool upper);

// grad_L and grad_U may be undefined.
Tensor lu_backward(const Tensor& grad_L, const Tensor& grad_U, const Tensor& P, const Tensor& L,
                   const Tensor& U);
Tensor lu_factor_backward(const Tensor& grad, const Tensor& A);
std::tuple<Tensor, Tensor> lu_forward(const Tensor& A_t, const Tensor& P, const Tensor& L,
                                      const Tensor& U);
Tensor lu_factor_forward(const Tensor& A_t, const Tensor& A_p);

Tensor cholesky_inverse_backward(const Tensor& grad, const Tensor& factor, bool upper,
                                 const Tensor& inverse);
Tensor cholesky_inverse_forward(const Tensor& factor_t, const Tensor& factor_p, bool upper,
                                const Tensor& inverse);
// (B, factor)
std::tuple<Tensor, Tensor> cholesky_solve_backward(const Tensor& grad, const Tensor& factor,
                                                   bool upper, const Tensor& result,
                                                   std::array<bool, 2> wanted);
Tensor cholesky_solve_forward(const Tensor& B_t, const Tensor& factor_t, const Tensor& factor_p,
                              bool upper, const Tensor& result);

// (LU, B) of A X = B and its variants.
std::tuple<Tensor, Tensor> lu_solve_backward(const Tensor& grad, const Tensor& LU,
                                             const Tensor& pivots, const Tensor& result, bool left,
                                             bool adjoint, std::array<bool, 2> wanted);
Tensor lu_solve_forward(const Tensor& LU_t, const Tensor& LU_p, const Tensor& pivots,
                        const Tensor& B_t, const Tensor& result, bool left, bool adjoint);
// The gradient of the packed form of a matrix of `sizes`. grad_L and grad_U may be undefined.
Tensor lu_unpack_backward(const Tensor& grad_L, const Tensor& grad_U, IntArrayRef sizes);

Tensor matrix_exp_backward(const Tensor& grad, const Tensor& A);
Tensor matrix_exp_forward(const Tensor& A_t, const Tensor& A_p);

// (A, b) of the solution of least squares. A gradient of the residuals may come too.
std::tuple<Tensor, Tensor> lstsq_backward(const Tensor& grad_solution, const Tensor& grad_residuals,
                                          const Tensor& A, const Tensor& b, const Tensor& solution,
                                          std::array<bool, 2> wanted);

// (solution, residuals)
std::tuple<Tensor, Tensor> lstsq_forward(const Tensor& A_t, const Tensor& A_p, const Tensor& b_t,
                                         const Tensor& b_p, const Tensor& solution,
                                         const Tensor& residuals);

// grad_Q and grad_R may be undefined.
Tensor qr_backward(const Tensor& grad_Q, const Tensor& grad_R, const Tensor& Q, const Tensor& R,
                   std::string_view mode);
std::tuple<Tensor, Tensor> qr_forward(const Tensor& A_t, const Tensor& Q, const Tensor& R,
                                      std::string_view mode);

// Gradients may be undefined. With full matrices, only the first columns of U and V count; the
// others are any that fill up a basis, and stay where they are.
Tensor svd_backward(const Tensor& grad_U, const Tensor& grad_S, const Tensor& grad_Vh,
                    const Tensor& U, const Tensor& S, const Tensor& Vh);
std::tuple<Tensor, Tensor, Tensor> svd_forward(const Tensor& A_t, const Tensor& U, const Tensor& S,
                                               const Tensor& Vh);

// Gradients may be undefined.
Tensor eigh_backward(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& values,
                     const Tensor& vectors);
std::tuple<Tensor, Tensor> eigh_forward(const Tensor& A_t, const Tensor& values,
                                        const Tensor& vectors);
Tensor eig_backward(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& values,
                    const Tensor& vectors);
std::tuple<Tensor, Tensor> eig_forward(const Tensor& A_t, const Tensor& values,
                                       const Tensor& vectors);

Tensor pinv_backward(const Tensor& grad, const Tensor& pinv, const Tensor& A);
Tensor pinv_forward(const Tensor& A_t, const Tensor& pinv, const Tensor& A);

}  // namespace lamella
