// liblamella_blas.so: products of complex matrices by OpenBLAS, and the library's function table.
#include "lamella/kernels/blas/blas.h"

#include <cblas.h>

#include <cstdio>
#include <exception>

#include "lamella/core/scalar_type.h"
#include "lamella/kernels/blas/convolution.h"
#include "lamella/kernels/blas/lapack.h"
#include "lamella/kernels/blas/library_call.h"

namespace {

using lamella::ScalarType;

template <class Call>
int gemm_cblas(const lamella_gemm& p, size_t bytes, Call&& call) {
  for (int64_t i = 0; i < p.batch; ++i) {
    auto at = [&](const void* base, int64_t stride) {
      return static_cast<const char*>(base) + i * stride * static_cast<int64_t>(bytes);
    };
    call(p.trans_a ? CblasTrans : CblasNoTrans, p.trans_b ? CblasTrans : CblasNoTrans,
         at(p.a, p.batch_a), at(p.b, p.batch_b), const_cast<char*>(at(p.c, p.batch_c)));
  }
  return 0;
}

int32_t gemm(const lamella_gemm* problem, char* message, uint64_t size) {
  const lamella_gemm& p = *problem;
  auto fail = [&](const char* text) {
    std::snprintf(message, size, "%s", text);
    return 1;
  };
  try {
    lamella::blas::LibraryCall call;
    auto m = static_cast<blasint>(p.m), n = static_cast<blasint>(p.n),
         k = static_cast<blasint>(p.k);
    auto lda = static_cast<blasint>(p.lda), ldb = static_cast<blasint>(p.ldb),
         ldc = static_cast<blasint>(p.ldc);
    switch (static_cast<ScalarType>(p.scalar_type)) {
      case ScalarType::ComplexFloat: {
        float alpha[2] = {static_cast<float>(p.alpha[0]), static_cast<float>(p.alpha[1])};
        float beta[2] = {static_cast<float>(p.beta[0]), static_cast<float>(p.beta[1])};
        gemm_cblas(p, 8, [&](auto ta, auto tb, const void* a, const void* b, void* c) {
          cblas_cgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
        });
        break;
      }
      case ScalarType::ComplexDouble:
        gemm_cblas(p, 16, [&](auto ta, auto tb, const void* a, const void* b, void* c) {
          cblas_zgemm(CblasRowMajor, ta, tb, m, n, k, p.alpha, a, lda, b, ldb, p.beta, c, ldc);
        });
        break;
      default:
        return fail("no matrix product for this dtype");
    }
    return LAMELLA_BLAS_OK;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

const lamella_blas table = {
    LAMELLA_BLAS_VERSION,         0, &gemm, &lamella_lapack_table, &lamella::blas::convolution,
    &lamella::blas::close_library};

}  // namespace

extern "C" __attribute__((visibility("default"))) const lamella_blas* lamella_blas_table(void) {
  return &table;
}
