// Products of Householder reflectors H = 1 - tau v v^H, as QR decompositions store them: v is 1 on
// the diagonal, followed by the elements below it; elements above it are ignored.
#include <cmath>
#include <complex>

#include "lamella/kernels/families/families.h"

namespace aten::native {
namespace {

void check_reflectors(const char* op, const Tensor& a, const Tensor& tau) {
  LAMELLA_CHECK(a.dim() >= 2 && tau.dim() == a.dim() - 1, op,
                ": expected reflectors in a stack of matrices and one factor for each, got ",
                a.sizes(), " and ", tau.sizes());
  LAMELLA_CHECK(tau.size(-1) <= std::min(a.size(-1), a.size(-2)), op,
                ": expected at most as many factors as rows and columns, got ", tau.sizes(),
                " for ", a.sizes());
  LAMELLA_CHECK_TYPE(a.scalar_type() == tau.scalar_type(), op,
                     ": expected 'tau' to have the dtype ", a.scalar_type(), ", got ",
                     tau.scalar_type());
}

Tensor adjoint(const Tensor& t) {
  const Tensor flipped = t.transpose(-2, -1);
  return flipped.is_complex() ? flipped.conj_physical() : flipped;
}

// H_i x if `left`, else x H_i, for reflector i, or its adjoint if `turned`.
Tensor reflected(const Tensor& a, const Tensor& tau, int64_t i, const Tensor& x, bool left,
                 bool turned) {
  const int64_t rows = a.size(-2);
  Dims shape(a.sizes().begin(), a.sizes().end() - 2);
  shape.push_back(i + 1);
  const Tensor head =
      lamella::constant_pad_nd(lamella::ones({1}, a.options()), {i, 0}, 0).expand(shape);
  const Tensor v =
      lamella::cat({head, a.select(-1, i).narrow(-1, i + 1, rows - i - 1)}, -1).unsqueeze(-1);
  Tensor t = tau.select(-1, i).unsqueeze(-1).unsqueeze(-1);
  if (turned && t.is_complex()) t = t.conj_physical();
  return left ? x.sub(t.mul(v).matmul(adjoint(v).matmul(x)))
              : x.sub(x.matmul(v).mul(t).matmul(adjoint(v)));
}

}  // namespace

Tensor linalg_householder_product(const Tensor& input, const Tensor& tau) {
  const char* op = "linalg_householder_product";
  check_reflectors(op, input, tau);
  LAMELLA_CHECK(input.size(-1) <= input.size(-2), op,
                ": expected 'input' to have at least as many rows as columns, got ", input.sizes());
  Tensor q = lamella::eye(input.size(-2), input.size(-1), input.options()).expand(input.sizes());
  for (int64_t i = tau.size(-1); i-- > 0;) q = reflected(input, tau, i, q, true, false);
  // Without reflectors the result does not depend on the input; the empty sum keeps it
  // differentiable.
  if (tau.size(-1) == 0) q = q.add(input.narrow(-1, 0, 0).sum(IntArrayRef(int64_t{-1}), true));
  return q.contiguous();
}
Tensor orgqr(const Tensor& self, const Tensor& input2) {
  return aten::linalg_householder_product(self, input2);
}

Tensor ormqr(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left,
             bool transpose) {
  const char* op = "ormqr";
  check_reflectors(op, self, input2);
  LAMELLA_CHECK(input3.dim() == self.dim() && input3.size(left ? -2 : -1) == self.size(-2), op,
                ": expected 'input3' to have ", self.size(-2), left ? " rows" : " columns",
                ", got ", input3.sizes());
  // For Q x and x Q^H, the last reflector is applied first.
  const bool last_first = left != transpose;
  const int64_t count = input2.size(-1);
  Tensor result = input3;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t i = last_first ? count - 1 - k : k;
    result = reflected(self, input2, i, result, left, transpose);
  }
  return count == 0 ? result.clone() : result;
}

std::tuple<Tensor, Tensor> geqrf(const Tensor& self) {
  const char* op = "geqrf";
  LAMELLA_CHECK(self.dim() >= 2, op, ": expected 'self' to be a stack of matrices, got ",
                self.sizes());
  LAMELLA_CHECK_TYPE(self.is_floating_point() || self.is_complex(), op,
                     ": expected 'self' to be floating point or complex, got ", self.scalar_type());
  const int64_t m = self.size(-2), n = self.size(-1), k = std::min(m, n);
  Dims shape(self.sizes().begin(), self.sizes().end() - 2);
  shape.push_back(k);
  if (self.is_meta() || self.numel() == 0) {
    return {lamella::empty(self.sizes(), self.options()), lamella::zeros(shape, self.options())};
  }
  using C = std::complex<double>;
  const Tensor a = self.to(kComplexDouble).clone(MemoryFormat::Contiguous);
  const Tensor tau = lamella::zeros(shape, a.options());
  auto* matrices = static_cast<C*>(a.mutable_data_ptr());
  auto* factors = static_cast<C*>(tau.mutable_data_ptr());
  in_parallel(self.numel() / (m * n), 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      C* at = matrices + b * m * n;
      for (int64_t j = 0; j < k; ++j) {
        double below = 0;
        for (int64_t i = j + 1; i < m; ++i) below = std::hypot(below, std::abs(at[i * n + j]));
        const C head = at[j * n + j];
        if (below == 0 && head.imag() == 0) continue;
        const double size = std::hypot(std::abs(head), below);
        const double beta = head.real() >= 0 ? -size : size;
        const C t = (beta - head) / beta;
        factors[b * k + j] = t;
        at[j * n + j] = beta;
        for (int64_t i = j + 1; i < m; ++i) at[i * n + j] /= head - beta;
        for (int64_t c = j + 1; c < n; ++c) {
          C dot = at[j * n + c];
          for (int64_t i = j + 1; i < m; ++i) dot += std::conj(at[i * n + j]) * at[i * n + c];
          dot *= std::conj(t);
          at[j * n + c] -= dot;
          for (int64_t i = j + 1; i < m; ++i) at[i * n + c] -= at[i * n + j] * dot;
        }
      }
    }
  });
  auto back = [&](const Tensor& t) {
    return self.is_complex() ? t.to(self.scalar_type())
                             : lamella::real(t).to(self.scalar_type()).contiguous();
  };
  return {back(a), back(tau)};
}

}  // namespace aten::native
