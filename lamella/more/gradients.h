// What formulas of ops/more_derivatives.yaml call.
#pragma once
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

}  // namespace aten
