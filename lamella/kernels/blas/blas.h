/* The interface of liblamella_blas.so: convolutions, decompositions and products of complex
 * matrices, in a library of their own that is loaded when the first one comes along (of products,
 * the first of some size). Pure C; the table's fields are never moved.
 *
 * Note [Threads of the libraries]
 *   Every call runs on the thread that calls, whatever OpenMP's or the libraries' own settings are:
 *   who has several threads calls with a part of the problem on each. So there is one pool of
 *   threads, nothing waits for a thread that has no processor, results do not depend on how many
 *   there are, and a forked child finds no library that waits for threads of its parent. A fork
 *   waits for calls that run, so that the libraries' own locks are free in the child. */
#ifndef LAMELLA_KERNELS_BLAS_BLAS_H_
#define LAMELLA_KERNELS_BLAS_BLAS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LAMELLA_BLAS_VERSION 6
enum { LAMELLA_BLAS_OK = 0, LAMELLA_BLAS_FAILED = 1, LAMELLA_BLAS_UNSUPPORTED = 2 };

/* C = alpha * op(A) * op(B) + beta * C for `batch` triples of row-major matrices; op(A) is m x k,
 * op(B) k x n, C m x n. Leading dimensions and batch strides count elements. With beta 0, C is not
 * read. */
typedef struct lamella_gemm {
  uint8_t scalar_type; /* complex64, complex128 */
  uint8_t trans_a, trans_b;
  uint8_t reserved[5];
  int64_t batch, m, n, k;
  double alpha[2], beta[2]; /* real and imaginary */
  const void* a;
  const void* b;
  void* c;
  int64_t lda, ldb, ldc;
  int64_t batch_a, batch_b, batch_c;
} lamella_gemm;

/* LAPACK on column-major matrices of float32, float64, complex64 or complex128, one matrix a call.
 * Functions return LAPACK's info: 0; above 0 what the routine says about the matrix; below 0 the
 * position of an argument that is not as LAPACK wants it, or one of the values below. Real values
 * (s, w) of complex matrices are of the real dtype of the same precision; gesdd, heevd and geev
 * take finite matrices, and their leading dimensions are their numbers of rows. */
enum {
  LAMELLA_LAPACK_NO_MEMORY = -1000, /* for the work space */
  LAMELLA_LAPACK_TOO_LARGE = -1001  /* LAPACK counts in 32 bits */
};
typedef struct lamella_lapack {
  /* Overwrites the given triangle of `a` with its Cholesky factor. */
  int32_t (*potrf)(uint8_t type, int32_t upper, int64_t n, void* a, int64_t lda);
  /* Overwrites `a`, m x n, with its LU factors; pivots are counted from 1. */
  int32_t (*getrf)(uint8_t type, int64_t m, int64_t n, void* a, int64_t lda, int32_t* pivots);
  /* Solves op(A) X = B in `b` from getrf's factors; op: 0 none, 1 transposed, 2 and conjugated. */
  int32_t (*getrs)(uint8_t type, int32_t op, int64_t n, int64_t columns, const void* a, int64_t lda,
                   const int32_t* pivots, void* b, int64_t ldb);
  /* Overwrites the upper triangle with R; the reflectors go below it and into tau. */
  int32_t (*geqrf)(uint8_t type, int64_t m, int64_t n, void* a, int64_t lda, void* tau);
  /* The first n columns of the product of k reflectors. */
  int32_t (*orgqr)(uint8_t type, int64_t m, int64_t n, int64_t k, void* a, int64_t lda,
                   const void* tau);
  /* job: 'A' all columns of u and rows of vh, 'S' the first min(m, n), 'N' none. Overwrites a. */
  int32_t (*gesdd)(uint8_t type, char job, int64_t m, int64_t n, void* a, int64_t lda, void* s,
                   void* u, int64_t ldu, void* vh, int64_t ldvh);
  /* Eigenvalues, ascending, and with `vectors` eigenvectors over `a`, of which one triangle counts.
   */
  int32_t (*heevd)(uint8_t type, int32_t vectors, int32_t upper, int64_t n, void* a, int64_t lda,
                   void* w);
  /* Eigenvalues and right eigenvectors (v may be NULL), both complex. Overwrites a. */
  int32_t (*geev)(uint8_t type, int64_t n, void* a, int64_t lda, void* w, void* v, int64_t ldv);
  /* op(A) X = B, or with `right` X op(A) = B, over b, which is m x n. */
  int32_t (*trsm)(uint8_t type, int32_t right, int32_t upper, int32_t op, int32_t unit, int64_t m,
                  int64_t n, const void* a, int64_t lda, void* b, int64_t ldb);
  /* L D L^T, or with `hermitian` L D L^H, over the lower triangle of `a`; pivots counted from 1,
   * negative for both rows of a block of D. */
  int32_t (*sytrf)(uint8_t type, int32_t hermitian, int64_t n, void* a, int64_t lda,
                   int32_t* pivots);
  /* Solves A X = B in `b` from sytrf's factors. */
  int32_t (*sytrs)(uint8_t type, int32_t hermitian, int64_t n, int64_t columns, const void* a,
                   int64_t lda, const int32_t* pivots, void* b, int64_t ldb);
} lamella_lapack;

enum {
  LAMELLA_CONVOLUTION_FORWARD = 0,         /* dst from src, weights and, if not NULL, bias */
  LAMELLA_CONVOLUTION_BACKWARD_DATA = 1,   /* src from dst and weights */
  LAMELLA_CONVOLUTION_BACKWARD_WEIGHTS = 2 /* weights from src and dst */
};
/* A convolution over 1 to 3 spatial dimensions, of float32, or with `bfloat16` of those, but for
 * bias and for weights that are written, which stay float32. Without src, weights and dst nothing
 * is computed: the status says whether there is fast code. Entries of the arrays beyond `ndim` are
 * not read. Dilation 1 is a dense kernel. What lies outside of src before its first element and
 * behind its last one, `padding` and `padding_end`, is 0; the end may be negative where the last
 * elements are not reached. */
typedef struct lamella_convolution {
  uint8_t kind; /* LAMELLA_CONVOLUTION_* */
  uint8_t ndim;
  uint8_t bfloat16;
  uint8_t reserved[5];
  int64_t batch, groups, in_channels, out_channels;
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], padding_end[3], dilation[3];
  /* In elements. Of src and dst: sample, channel, spatial dimensions; of weights: output channel,
   * input channel of its group, taps. */
  int64_t src_strides[5], weights_strides[5], dst_strides[5];
  void* src;
  void* weights;
  const void* bias;
  void* dst;
  /* Memory of at least `bytes` bytes, aligned to 64, that lives until the call returns. */
  void* (*scratch)(void* context, uint64_t bytes);
  /* Looks up weights that are cached in the library's own layout, which has the number `layout`;
   * may be NULL. Returns NULL if they are not cached; memory as scratch() gives for the call to
   * fill, with *is_filled 0; or memory that an earlier call filled, with *is_filled 1. */
  void* (*kept)(void* context, uint64_t layout, uint64_t bytes, int32_t* is_filled);
  void* context;
} lamella_convolution;

typedef struct lamella_blas {
  uint32_t version;
  uint32_t reserved;
  /* 0; LAMELLA_BLAS_UNSUPPORTED if this machine has no fast code for the dtype; otherwise what
   * failed is in `message` (at most `size` bytes, with the terminating zero). */
  int32_t (*gemm)(const lamella_gemm* problem, char* message, uint64_t size);
  const lamella_lapack* lapack;
  int32_t (*convolution)(const lamella_convolution* problem, char* message, uint64_t size);
  /* Waits for running calls; calls that other threads begin later never return. Used at the end of
   * the process, when the libraries free their memory. */
  void (*close)(void);
} lamella_blas;

/* The only symbol that is looked up when the library is loaded. */
const lamella_blas* lamella_blas_table(void);

#ifdef __cplusplus
}
#endif
#endif /* LAMELLA_KERNELS_BLAS_BLAS_H_ */
