// Singular values and eigenvalues.
#include <cmath>
#include <cstring>

#include "lamella/kernels/cpu/lapack.h"
#include "lamella/kernels/device_math.h"

namespace lamella::native {

namespace {
void check_converged(const char* op, int32_t info, int64_t i) {
  if (info < 0) check_lapack(op, info);
  LAMELLA_CHECK_LINALG(info == 0, op, ": expected a well-conditioned matrix, got matrix ", i,
                       " of the batch, for which the algorithm did not converge (info ", info, ")");
}
// Must be checked first: with infinities or NaN, LAPACK's iterations may not end, or may leave
// their memory.
bool is_finite(const Stack& matrices, int64_t i, const Tensor& like) {
  return all_finite(matrices.at(i), like.size(-1) * like.size(-2), like.scalar_type());
}
ScalarType real_of(const Tensor& a) {
  return a.is_complex() ? to_real_type(a.scalar_type()) : a.scalar_type();
}
}  // namespace

namespace {
// The matrices of a batch are all finite, each with a true element.
Tensor finite_matrices(const Tensor& A) {
  return A.isfinite().flatten(-2, -1).all(-1).unsqueeze(-1);
}

// Libraries decompose tall matrices; A^H = V S U^H.
void svd_on_device(const char* op, const Tensor& A, Tensor& U, const Tensor& S, Tensor& Vh,
                   bool full_matrices, bool compute_uv) {
  LAMELLA_CHECK_LINALG(A.isfinite().all().item().toBool(), op,
                       ": expected 'A' to be finite, got infinities or NaNs");
  const bool wide = A.size(-2) < A.size(-1);
  Tensor copy = copy_columns(wide ? A.mH().resolve_conj() : A);
  Tensor info = lamella::zeros(batch_of(A), TensorOptions(kInt).device(A.device()));
  DeviceFactor call = factor_call(DeviceFactor::kSingular, copy);
  call.vectors = compute_uv;
  call.full = full_matrices;
  call.b = S.data_ptr();
  call.info = info.mutable_data_ptr<int32_t>();
  Tensor left, right;
  if (compute_uv) {
    left = wide ? empty_columns(Vh.mT().sizes(), A.scalar_type(), A.device()) : U;
    right = wide ? empty_columns(U.mT().sizes(), A.scalar_type(), A.device()) : Vh;
    call.u = left.data_ptr();
    call.v = right.data_ptr();
  }
  factor_on_device(op, call);
  check_info(op, info, "a well-conditioned 'A'");
  if (compute_uv && wide) {
    U.copy_(right.mH());
    Vh.copy_(left.mH());
  }
}

// Matrices with infinities or NaN get NaN, as on the CPU.
void eigh_on_device(const char* op, const Tensor& vectors, const Tensor& values, bool upper,
                    bool compute_v) {
  const Tensor finite = finite_matrices(vectors);
  vectors.copy_(vectors.nan_to_num(0, 0, 0));
  Tensor info = lamella::zeros(batch_of(vectors), TensorOptions(kInt).device(vectors.device()));
  DeviceFactor call = factor_call(DeviceFactor::kEigen, vectors);
  call.upper = upper;
  call.vectors = compute_v;
  call.b = values.data_ptr();
  call.info = info.mutable_data_ptr<int32_t>();
  factor_on_device(op, call);
  check_info(op, info, "a well-conditioned 'A'");
  const Scalar nan(std::nan(""));
  const_cast<Tensor&>(values).masked_fill_(finite.logical_not(), nan);
  const_cast<Tensor&>(vectors).masked_fill_(finite.unsqueeze(-1).logical_not(), nan);
}
}  // namespace

std::tuple<Tensor, Tensor, Tensor> _linalg_svd(const Tensor& A, bool full_matrices, bool compute_uv,
                                               std::optional<std::string_view> driver) {
  const char* op = "linalg_svd";
  check_matrices(op, A, "A");
  LAMELLA_CHECK(!driver, op, ": expected 'driver' to be None on the CPU, got '", *driver, "'");
  int64_t m = A.size(-2), n = A.size(-1), k = m < n ? m : n;
  Dims batch = batch_of(A);
  ScalarType dtype = A.scalar_type();
  Tensor S = new_tensor(with_sizes(batch, k), real_of(A), A.device());
  Tensor U = new_tensor({0}, dtype, A.device()), Vh = U;
  if (compute_uv) {
    U = empty_columns(with_sizes(batch, m, full_matrices ? m : k), dtype, A.device());
    Vh = empty_columns(with_sizes(batch, full_matrices ? n : k, n), dtype, A.device());
  } else {
    Vh = new_tensor({0}, dtype, A.device());
  }
  if (A.is_meta()) return {U, S, Vh};
  if (k == 0) {
    for (Tensor* factor : {&U, &Vh}) {
      if (factor->dim() < 2 || factor->numel() == 0) continue;
      factor->zero_();
      factor->diagonal(0, -2, -1).fill_(1);
    }
    return {U, S, Vh};
  }
  if (!A.is_cpu()) {
    svd_on_device(op, A, U, S, Vh, full_matrices, compute_uv);
    return {U, S, Vh};
  }
  Tensor copy = copy_columns(A);
  Stack matrices(copy), values(S, 1);
  char job = !compute_uv ? 'N' : full_matrices ? 'A' : 'S';
  for (int64_t i = 0, count = product(batch); i < count; ++i) {
    LAMELLA_CHECK_LINALG(is_finite(matrices, i, copy), op,
                         ": expected 'A' to be finite, got infinities or NaNs in matrix ", i,
                         " of the batch");
    void* u = nullptr;
    void* vh = nullptr;
    int64_t ldu = 1, ldvh = 1;
    if (compute_uv) {
      Stack left(U), right(Vh);
      u = left.at(i);
      vh = right.at(i);
      ldu = left.leading();
      ldvh = right.leading();
    }
    int32_t info = lapack().gesdd(static_cast<uint8_t>(dtype), job, m, n, matrices.at(i),
                                  matrices.leading(), values.at(i), u, ldu, vh, ldvh);
    check_converged(op, info, i);
  }
  return {U, S, Vh};
}

std::tuple<Tensor, Tensor> _linalg_eigh(const Tensor& A, std::string_view UPLO, bool compute_v) {
  const char* op = "linalg_eigh";
  check_square(op, A, "A");
  LAMELLA_CHECK(UPLO == "L" || UPLO == "U" || UPLO == "l" || UPLO == "u", op,
                ": expected 'UPLO' to be L or U, got '", UPLO, "'");
  int64_t n = A.size(-1);
  Dims batch = batch_of(A);
  Tensor values = new_tensor(with_sizes(batch, n), real_of(A), A.device());
  bool upper = UPLO == "U" || UPLO == "u";
  Tensor vectors = copy_columns(upper ? A.triu() : A.tril());
  if (!A.is_meta() && !A.is_cpu() && vectors.numel() > 0) {
    eigh_on_device(op, vectors, values, upper, compute_v);
  } else if (A.is_cpu() && n > 0) {
    Stack matrices(vectors), eigenvalues(values, 1);
    for (int64_t i = 0, count = product(batch); i < count; ++i) {
      if (!is_finite(matrices, i, vectors)) {
        // All bits set are a NaN.
        std::memset(matrices.at(i), 0xff, static_cast<size_t>(n * n * vectors.element_size()));
        std::memset(eigenvalues.at(i), 0xff, static_cast<size_t>(n * values.element_size()));
        continue;
      }
      check_converged(op,
                      lapack().heevd(static_cast<uint8_t>(A.scalar_type()), compute_v, upper, n,
                                     matrices.at(i), matrices.leading(), eigenvalues.at(i)),
                      i);
    }
  }
  if (!compute_v) vectors = new_tensor({0}, A.scalar_type(), A.device());
  return {values, vectors};
}

std::tuple<Tensor, Tensor> linalg_eig(const Tensor& self) {
  const char* op = "linalg_eig";
  check_square(op, self, "self");
  int64_t n = self.size(-1);
  Dims batch = batch_of(self);
  ScalarType dtype = to_complex_type(self.scalar_type());
  Tensor values = new_tensor(with_sizes(batch, n), dtype, self.device());
  Tensor vectors = empty_columns(self.sizes(), dtype, self.device());
  if (self.is_meta() || n == 0) return {values, vectors};
  Tensor copy = copy_columns(self);
  LAMELLA_CHECK(all_finite(copy.const_data_ptr(), copy.numel(), copy.scalar_type()), op,
                ": expected 'self' to be finite, got infinities or NaNs");
  Stack matrices(copy), eigenvalues(values, 1), columns(vectors);
  for (int64_t i = 0, count = product(batch); i < count; ++i) {
    check_converged(
        op,
        lapack().geev(static_cast<uint8_t>(self.scalar_type()), n, matrices.at(i),
                      matrices.leading(), eigenvalues.at(i), columns.at(i), columns.leading()),
        i);
  }
  return {values, vectors};
}

}  // namespace lamella::native
