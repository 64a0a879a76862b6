// Kernels that machine code generated at run time calls. For liblamella_compiler.so.
#pragma once
#include <cstdint>

#include "lamella/core/macros.h"
#include "lamella/core/storage.h"

namespace lamella::native {

// A batch of products c = a b, or a b + d with a row d: a is m x k, b k x n, c m x n and dense.
// Strides are in elements. The generated code stores this structure among its constants.
struct CodeProduct {
  int64_t dtype;  // a ScalarType: that of a and b; for uint8 b is int8
  int64_t batch, m, n, k;
  int64_t a_batch, a_row, a_column;
  int64_t b_batch, b_row, b_column;
  int64_t d_column;
  int64_t result;  // the ScalarType of c and d
};

// out = softmax(q k^T scale + mask) v and the logarithms of the sums, dense. Strides of sample,
// head and row in elements; the elements of a row lie side by side.
struct CodeAttention {
  int64_t dtype;  // of q, k, v and out: float32, float16 or bfloat16
  int64_t batch, heads, key_heads, rows, keys, width, value_width;
  int64_t causal;
  double scale;
  int64_t q[3], k[3], v[3], out[3];
  int64_t mask[4], factors[4];  // strides of the optional operands
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

// Sizes and strides of a float32 convolution, as in lamella_convolution. The bias is added to each
// element of its output channel.
struct CodeConvolution {
  int64_t kind, ndim;
  int64_t batch, groups, in_channels, out_channels;
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], padding_end[3], dilation[3];
  int64_t src_strides[5], weights_strides[5], dst_strides[5];
};
// `storage` is the weights' storage if they may be constants, else null. The bias may be null.
LAMELLA_PRIVATE_API void code_convolution(const CodeConvolution& p, void* src, void* weights,
                                          void* dst, lamella_storage* storage, const void* bias);

// Copies elements of `bytes` bytes to dense memory `to` from `from`, which has the given strides.
LAMELLA_PRIVATE_API void code_copy(int64_t bytes, int64_t ndim, const int64_t* sizes,
                                   const int64_t* strides, const void* from, void* to);

// The CPU capability that kernels run with: 0, 1 or 2 as in CPUCapability.
LAMELLA_PRIVATE_API int code_capability();
// `storage` is the storage of b if b may be a constant, else null. d may be null.
LAMELLA_PRIVATE_API void code_product(const CodeProduct& p, const void* a, const void* b, void* c,
                                      lamella_storage* storage, const void* d);
// True if products of these dtypes with such sums, of k terms, are faster here than products of
// operands that were converted to the dtype of the sums.
LAMELLA_PRIVATE_API bool code_multiplies(int64_t a, int64_t b, int64_t sums, int64_t k);
// function(buffers, begin, end) for disjoint ranges that cover [0, count), on the threads of the
// kernels' pool.
LAMELLA_PRIVATE_API void code_parallel(void (*function)(void* const* buffers, int64_t begin,
                                                        int64_t end),
                                       void* const* buffers, int64_t count, int64_t grain);

}  // namespace lamella::native
