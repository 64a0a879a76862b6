// The gradient functions that formulas of ops/families_derivatives.yaml call.
#include "lamella/kernels/families/gradients.h"

#include "lamella/kernels/families/families.h"

namespace aten {

using namespace lamella;  // NOLINT(google-build-using-namespace)

// The input's imaginary parts are 0, so those of the gradient are dropped. Frequencies that a
// one-sided result omits have no gradient.
Tensor fft_r2c_backward(const Tensor& grad, IntArrayRef dim, int64_t normalization, bool onesided,
                        int64_t points) {
  Tensor full = grad;
  if (onesided) {
    const int64_t last = dim.back();
    const int64_t missing = points - grad.size(last);
    const int64_t behind = grad.dim() - (last < 0 ? last + grad.dim() : last);
    std::vector<int64_t> pad(static_cast<size_t>(2 * behind), 0);
    pad.back() = missing;
    full = lamella::constant_pad_nd(grad, pad, 0);
  }
  return lamella::real(aten::_fft_c2c(full, dim, normalization, false));
}

// Each frequency counts twice, except those that are their own conjugates.
Tensor fft_c2r_backward(const Tensor& grad, IntArrayRef dim, int64_t normalization) {
  const int64_t last = dim.back();
  const Tensor half = aten::_fft_r2c(grad, dim, normalization, true);
  const int64_t doubled = grad.size(last) - half.size(last);
  if (doubled <= 0) return half;
  const int64_t rest = half.size(last) - 1 - doubled;
  std::vector<Tensor> parts = {half.narrow(last, 0, 1), half.narrow(last, 1, doubled).mul(2)};
  if (rest > 0) parts.push_back(half.narrow(last, 1 + doubled, rest));
  return lamella::cat(parts, last);
}

Tensor ldl_solve_backward(const Tensor& grad, const Tensor& LD, const Tensor& pivots,
                          bool hermitian) {
  // The adjoint of a symmetric matrix is its conjugate.
  return hermitian ? aten::_linalg_ldl_solve(LD, pivots, grad, true)
                   : aten::_linalg_ldl_solve(LD, pivots, grad.conj(), false).conj();
}

namespace {
// The rows of `grad` that the elements lie in.
Tensor rows_of(const Tensor& grad, const Tensor& crow, const Tensor& columns) {
  return grad.index_select(0, aten::_segment_places(crow, columns.size(0), true, false));
}
}  // namespace
Tensor csr_values_backward(const Tensor& grad, const Tensor& crow, const Tensor& columns,
                           const Tensor& other) {
  const Tensor products =
      rows_of(grad, crow, columns).mul(other.conj().index_select(0, columns.to(kLong)));
  return other.dim() == 1 ? products : products.sum(IntArrayRef(int64_t{1}));
}
Tensor csr_other_backward(const Tensor& grad, const Tensor& crow, const Tensor& columns,
                          const Tensor& values, const Tensor& other) {
  const Tensor weights = other.dim() == 1 ? values.conj() : values.conj().unsqueeze(1);
  return lamella::zeros(other.sizes(), grad.options())
      .index_add(0, columns.to(kLong), rows_of(grad, crow, columns).mul(weights));
}

}  // namespace aten
