// What formulas of ops/more_derivatives.yaml call.
#pragma once
#include "lamella/lamella.h"

namespace aten {

// The gradients of _fft_r2c, whose last dimension had `points` elements, and of _fft_c2r.
lamella::Tensor fft_r2c_backward(const lamella::Tensor& grad, lamella::IntArrayRef dim,
                                 int64_t normalization, bool onesided, int64_t points);
lamella::Tensor fft_c2r_backward(const lamella::Tensor& grad, lamella::IntArrayRef dim,
                                 int64_t normalization);

}  // namespace aten
