// Singular values and eigenvalues.
#include <cstring>

#include "lamella/kernels/cpu/lapack.h"

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
  if (!A.is_meta() && n > 0) {
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
