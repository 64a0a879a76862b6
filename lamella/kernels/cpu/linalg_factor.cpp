// Factorisations: Cholesky, LU and QR.
#include <utility>

#include "lamella/kernels/cpu/lapack.h"
#include "lamella/kernels/cpu/small_matrices.h"
#include "lamella/kernels/device_math.h"

namespace lamella::native {

std::tuple<Tensor, Tensor> linalg_cholesky_ex(const Tensor& self, bool upper, bool check_errors) {
  const char* op = "linalg_cholesky_ex";
  check_square(op, self, "self");
  Tensor factor = copy_columns(self);
  Tensor info = lamella::zeros(batch_of(self), TensorOptions(kInt).device(self.device()));
  if (self.is_meta()) return {factor, info};
  Stack matrices(factor);
  auto* infos = info.mutable_data_ptr<int32_t>();
  int64_t n = self.size(-1);
  if (factor.numel() > 0 && !self.is_cpu()) {
    DeviceFactor call = factor_call(DeviceFactor::kCholesky, factor);
    call.upper = upper;
    call.info = infos;
    factor_on_device(op, call);
  }
  for (int64_t i = 0; self.is_cpu() && i < info.numel() && n > 0; ++i) {
    infos[i] = lapack().potrf(static_cast<uint8_t>(self.scalar_type()), upper, n, matrices.at(i),
                              matrices.leading());
    if (infos[i] < 0) check_lapack(op, infos[i]);
  }
  if (check_errors) check_info(op, info, "'self' to be positive-definite");
  upper ? factor.triu_() : factor.tril_();
  return {factor, info};
}

std::tuple<Tensor, Tensor, Tensor> linalg_lu_factor_ex(const Tensor& A, bool pivot,
                                                       bool check_errors) {
  const char* op = "linalg_lu_factor_ex";
  check_matrices(op, A, "A");
  LAMELLA_CHECK(pivot, op, ": expected 'pivot' to be True on the CPU, got False");
  int64_t m = A.size(-2), n = A.size(-1);
  Dims batch = batch_of(A);
  Tensor LU = copy_columns(A);
  TensorOptions whole = TensorOptions(kInt).device(A.device());
  Tensor pivots = lamella::empty(with_sizes(batch, m < n ? m : n), whole);
  Tensor info = lamella::zeros(batch, whole);
  if (A.is_meta()) return {LU, pivots, info};
  Stack matrices(LU), rows(pivots, 1);
  auto* infos = info.mutable_data_ptr<int32_t>();
  if (LU.numel() > 0 && !A.is_cpu()) {
    DeviceFactor call = factor_call(DeviceFactor::kLU, LU);
    call.pivots = pivots.mutable_data_ptr<int32_t>();
    call.info = infos;
    factor_on_device(op, call);
  }
  const bool is_small = are_small(A.scalar_type(), m, n);
  if (A.is_cpu() && is_small && LU.numel() > 0) {
    factor_small(A.scalar_type(), info.numel(), m, n, LU.data_ptr(),
                 pivots.mutable_data_ptr<int32_t>(), infos);
  }
  for (int64_t i = 0; A.is_cpu() && !is_small && i < info.numel() && LU.numel() > 0; ++i) {
    auto* exchanges = static_cast<int32_t*>(rows.at(i));
    infos[i] = lapack().getrf(static_cast<uint8_t>(A.scalar_type()), m, n, matrices.at(i),
                              matrices.leading(), exchanges);
    if (infos[i] < 0) check_lapack(op, infos[i]);
  }
  if (check_errors) check_info(op, info, "'A' to be of full rank");
  return {LU, pivots, info};
}

namespace {
// The permutation matrices of LAPACK's pivots, row exchanges counted from 1.
Tensor permutations(const Tensor& of, int64_t m, ScalarType dtype) {
  const Tensor pivots = of.cpu();
  Dims batch(pivots.sizes());
  batch.pop_back();
  Tensor result = lamella::zeros(with_sizes(batch, m, m), dtype);
  if (result.numel() == 0) return result;
  const auto* exchange = pivots.const_data_ptr<int32_t>();
  Tensor order = lamella::empty({m}, kLong);
  auto* p = order.mutable_data_ptr<int64_t>();
  Tensor columns = lamella::arange(m);
  Tensor stack = result.view({-1, m, m});
  for (int64_t i = 0, k = pivots.size(-1); i < stack.size(0); ++i) {
    for (int64_t j = 0; j < m; ++j) p[j] = j;
    for (int64_t j = 0; j < k; ++j) std::swap(p[j], p[exchange[i * k + j] - 1]);
    stack.select(0, i).index_put_({order, columns}, lamella::ones({}, dtype));
  }
  return result;
}
}  // namespace

std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots,
                                             bool unpack_data, bool unpack_pivots) {
  const char* op = "lu_unpack";
  check_matrices(op, LU_data, "LU_data");
  int64_t m = LU_data.size(-2), n = LU_data.size(-1), k = m < n ? m : n;
  Tensor pivots;
  if (unpack_pivots) {
    pivots = contiguous_pivots(op, "LU_pivots", LU_pivots, batch_of(LU_data), k, m);
  }
  Tensor P = LU_data.new_empty({0}), L = P, U = P;
  if (unpack_data) {
    L = LU_data.slice(-1, 0, k).tril(-1);
    L.diagonal(0, -2, -1).fill_(1);
    U = LU_data.slice(-2, 0, k).triu();
  }
  if (unpack_pivots) {
    P = LU_data.is_meta() ? LU_data.new_empty(with_sizes(batch_of(LU_data), m, m))
                          : permutations(pivots, m, LU_data.scalar_type()).to(LU_data.device());
  }
  return {P, L, U};
}
std::tuple<Tensor, Tensor, Tensor> linalg_lu(const Tensor& A, bool pivot) {
  auto [LU, pivots, info] = lamella::linalg_lu_factor_ex(A, pivot);
  return lamella::lu_unpack(LU, pivots);
}

std::tuple<Tensor, Tensor> linalg_qr(const Tensor& A, std::string_view mode) {
  const char* op = "linalg_qr";
  check_matrices(op, A, "A");
  bool complete = mode == "complete", reduced = mode == "reduced";
  LAMELLA_CHECK(complete || reduced || mode == "r", op,
                ": expected 'mode' to be reduced, complete or r, got '", mode, "'");
  int64_t m = A.size(-2), n = A.size(-1), k = m < n ? m : n;
  int64_t columns = complete ? m : k;  // of Q
  Dims batch = batch_of(A);
  Tensor R = copy_columns(A);
  Tensor Q;
  if (mode == "r") {
    Q = new_tensor({0}, A.scalar_type(), A.device());
  } else {
    Q = empty_columns(with_sizes(batch, m, columns), A.scalar_type(), A.device());
  }
  if (!A.is_meta() && Q.numel() > 0 && k == 0) {
    Q.zero_();
    Q.diagonal(0, -2, -1).fill_(1);
  }
  if (!A.is_meta() && A.numel() > 0) {
    auto type = static_cast<uint8_t>(A.scalar_type());
    Tensor tau = lamella::zeros(with_sizes(batch, k), A.options());
    Stack matrices(R), scales(tau, 1);
    Tensor copy = mode == "r" ? Tensor() : Q;
    const int64_t on_host = A.is_cpu() ? product(batch) : 0;
    if (!A.is_cpu()) {
      DeviceFactor call = factor_call(DeviceFactor::kQR, R);
      call.k = k;
      call.b = tau.data_ptr();
      factor_on_device(op, call);
    }
    for (int64_t i = 0; i < on_host; ++i) {
      check_lapack(op,
                   lapack().geqrf(type, m, n, matrices.at(i), matrices.leading(), scales.at(i)));
    }
    if (copy.defined()) {
      int64_t given = columns < n ? columns : n;  // the first k columns hold the reflectors
      copy.slice(-1, 0, given).copy_(R.slice(-1, 0, given));
      Stack orthogonal(copy);
      if (!A.is_cpu()) {
        DeviceFactor call = factor_call(DeviceFactor::kOrthogonal, copy);
        call.k = k;
        call.b = tau.data_ptr();
        factor_on_device(op, call);
      }
      for (int64_t i = 0; i < on_host; ++i) {
        check_lapack(op, lapack().orgqr(type, m, columns, k, orthogonal.at(i), orthogonal.leading(),
                                        scales.at(i)));
      }
    }
  }
  return {Q, R.slice(-2, 0, complete ? m : k).triu()};
}

}  // namespace lamella::native
