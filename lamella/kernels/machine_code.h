// What machine code that is made at run time needs of the kernels. For liblamella_compiler.so.
#pragma once
#include <cstdint>

#include "lamella/core/macros.h"
#include "lamella/core/storage.h"

namespace lamella::native {

// batch times c = a b, or a b + d of a row d: a is m x k, b k x n, c m x n and dense. Strides in
// elements. Laid out as the code has it among its constants.
struct CodeProduct {
  int64_t dtype;  // a ScalarType
  int64_t batch, m, n, k;
  int64_t a_batch, a_row, a_column;
  int64_t b_batch, b_row, b_column;
  int64_t d_column;
};

// out = softmax(q k^T scale + mask) v and the logarithms of the sums, dense. Strides of sample,
// head and row in elements; the elements of a row lie side by side.
struct CodeAttention {
  int64_t dtype;  // of q, k, v and out: float32, float16 or bfloat16
  int64_t batch, heads, key_heads, rows, keys, width, value_width;
  int64_t causal;
  double scale;
  int64_t q[3], k[3], v[3], out[3];
  int64_t mask[4], factors[4];  // of what may be absent
};
// The mask is added to the scores, dropout multiplies the weights with the factors; either may be
// null, and both are float32, as are the logarithms.
struct CodeAttentionData {
  const void *q, *k, *v;
  const float *mask, *factors;
  void* out;
  float* logsumexp;
};
LAMELLA_PRIVATE_API void code_attention(const CodeAttention& p, const CodeAttentionData& data);

// A convolution of float32 as liblamella_blas.so takes it, see lamella_convolution: sizes and
// strides. A bias begins the sums of its output channel.
struct CodeConvolution {
  int64_t kind, ndim;
  int64_t batch, groups, in_channels, out_channels;
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], padding_end[3], dilation[3];
  int64_t src_strides[5], weights_strides[5], dst_strides[5];
};
// `storage` is that of the weights where they may be constants, or null; so may the bias be.
LAMELLA_PRIVATE_API void code_convolution(const CodeConvolution& p, void* src, void* weights,
                                          void* dst, lamella_storage* storage, const void* bias);

// to = from of these sizes, elements of so many bytes: to is dense, from has the strides.
LAMELLA_PRIVATE_API void code_copy(int64_t bytes, int64_t ndim, const int64_t* sizes,
                                   const int64_t* strides, const void* from, void* to);

// The CPU capability that kernels run with: 0, 1 or 2 as in CPUCapability.
LAMELLA_PRIVATE_API int code_capability();
// `storage` is that of b where b may be a constant, or null; so may d be.
LAMELLA_PRIVATE_API void code_product(const CodeProduct& p, const void* a, const void* b, void* c,
                                      lamella_storage* storage, const void* d);
// function(buffers, begin, end) for disjoint ranges that cover [0, count), on the threads of the
// kernels' pool.
LAMELLA_PRIVATE_API void code_parallel(void (*function)(void* const* buffers, int64_t begin,
                                                        int64_t end),
                                       void* const* buffers, int64_t count, int64_t grain);

}  // namespace lamella::native
