// Gradient functions that formulas of ops/families_derivatives.yaml call.
#pragma once
#include <array>
#include <optional>
#include <tuple>

#include "lamella/lamella.h"

namespace aten {

// The gradients of _fft_r2c, whose last dimension had `points` elements, and of _fft_c2r.
lamella::Tensor fft_r2c_backward(const lamella::Tensor& grad, lamella::IntArrayRef dim,
                                 int64_t normalization, bool onesided, int64_t points);
lamella::Tensor fft_c2r_backward(const lamella::Tensor& grad, lamella::IntArrayRef dim,
                                 int64_t normalization);

// The gradient of the right-hand sides of _linalg_ldl_solve, summed by autograd where they were
// broadcast.
lamella::Tensor ldl_solve_backward(const lamella::Tensor& grad, const lamella::Tensor& LD,
                                   const lamella::Tensor& pivots, bool hermitian);

// The gradients of the elements and of the dense side of _csr_mm.
lamella::Tensor csr_values_backward(const lamella::Tensor& grad, const lamella::Tensor& crow,
                                    const lamella::Tensor& columns, const lamella::Tensor& other);
lamella::Tensor csr_other_backward(const lamella::Tensor& grad, const lamella::Tensor& crow,
                                   const lamella::Tensor& columns, const lamella::Tensor& values,
                                   const lamella::Tensor& other);

// The gradient of _sample_dirichlet. A coordinate depends on its own concentration like a beta
// sample, and the others share the remainder.
lamella::Tensor sample_dirichlet_backward(const lamella::Tensor& grad, const lamella::Tensor& alpha,
                                          const lamella::Tensor& x);

// The gradients of _rnn_layer_backward for grad_output, grad_hy, grad_cy, hx, w_hh, w_hr, cx, b_hh,
// rows, w_ih and b_ih, given those of its results; none for output, which is computed from these.
// Throws without `rows`.
using RnnGradients = decltype(std::tuple_cat(std::array<lamella::Tensor, 12>()));
RnnGradients rnn_layer_double_backward(
    lamella::TensorList grads, const std::optional<lamella::Tensor>& grad_output,
    const std::optional<lamella::Tensor>& grad_hy, const std::optional<lamella::Tensor>& grad_cy,
    const lamella::Tensor& hx, const lamella::Tensor& w_hh,
    const std::optional<lamella::Tensor>& w_hr, const std::optional<lamella::Tensor>& cx,
    const std::optional<lamella::Tensor>& b_hh, const std::optional<lamella::Tensor>& rows,
    const std::optional<lamella::Tensor>& w_ih, const std::optional<lamella::Tensor>& b_ih,
    lamella::IntArrayRef batch_sizes, int64_t mode, bool reverse, std::array<bool, 12> wanted);

}  // namespace aten
