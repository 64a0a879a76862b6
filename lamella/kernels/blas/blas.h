/* The interface of liblamella_blas.so: matrix products, in a library of their own that is loaded
 * when the first product of some size comes along. Pure C; the table's fields are never moved. */
#ifndef LAMELLA_KERNELS_BLAS_BLAS_H_
#define LAMELLA_KERNELS_BLAS_BLAS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LAMELLA_BLAS_VERSION 1
enum { LAMELLA_BLAS_OK = 0, LAMELLA_BLAS_FAILED = 1, LAMELLA_BLAS_UNSUPPORTED = 2 };

/* C = alpha * op(A) * op(B) + beta * C for `batch` triples of row-major matrices; op(A) is m x k,
 * op(B) k x n, C m x n. Leading dimensions and batch strides count elements. With beta 0, C is not
 * read. */
typedef struct lamella_gemm {
  uint8_t scalar_type; /* float32, float64, complex64, complex128, bfloat16 */
  uint8_t trans_a, trans_b;
  uint8_t reserved;
  int32_t threads; /* at most */
  int64_t batch, m, n, k;
  double alpha[2], beta[2]; /* real and imaginary */
  const void* a;
  const void* b;
  void* c;
  int64_t lda, ldb, ldc;
  int64_t batch_a, batch_b, batch_c;
} lamella_gemm;

typedef struct lamella_blas {
  uint32_t version;
  uint32_t reserved;
  /* 0; LAMELLA_BLAS_UNSUPPORTED if this machine has no fast code for the dtype; otherwise what
   * failed is in `message` (at most `size` bytes, with the terminating zero). */
  int32_t (*gemm)(const lamella_gemm* problem, char* message, uint64_t size);
} lamella_blas;

/* The one symbol that is looked up. */
const lamella_blas* lamella_blas_table(void);

#ifdef __cplusplus
}
#endif
#endif /* LAMELLA_KERNELS_BLAS_BLAS_H_ */
