// The fused attention kernels, float32, float16 and bfloat16, one set for each CPU capability.
//
// Note [Attention by tiles]
//   A call takes one head and some queries, and passes over the keys in tiles, with a running
//   maximum and sum for each query, so that the whole matrix of scores is never stored. Scores are
//   stored with the queries innermost: a vector holds neighbouring queries, neither maxima nor sums
//   cross its lanes, and keys and values are read in their own layout. Exponentials are powers of
//   2; the queries are scaled by log2(e) for that. With `causal`, query i sees keys up to i, and
//   tiles that no query sees are skipped. T. Dao et al., FlashAttention, NeurIPS 2022; M. Milakov
//   and N. Gimelshein, Online normalizer calculation for softmax, arXiv:1805.02867.
#pragma once
#include "lamella/core/scalar_type.h"
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// Rows of one head, `row` bytes apart, their elements side by side.
struct AttentionRows {
  const char* data;
  int64_t row;
};
// The operands common to a head's forward and backward. mask is float, is added to the scores, and
// may be null; its strides count elements and may be 0.
struct AttentionHead {
  ScalarType dtype;  // of q, k, v
  AttentionRows q, k, v;
  const float* mask;
  int64_t mask_row, mask_column;
  int64_t queries, keys, width, value_width;
  float scale;
  bool causal;
  // Dropout's factors for the attention weights, one row for each query; null without dropout.
  const float* factors = nullptr;
  int64_t factors_row = 0;
};

// out = softmax(q k^T * scale + mask) v and logsumexp, one number for each query, of queries
// [first, last). A query that sees no key gives zeros and -infinity.
struct AttentionForward {
  AttentionHead head;
  char* out;  // of the head's dtype
  int64_t out_row;
  float* logsumexp;
};
using attention_fn = void (*)(const AttentionForward& call, int64_t first, int64_t last);
LAMELLA_KERNEL(attention_fn, attention_on);

// Queries that one call of the forward should get.
inline constexpr int64_t kAttentionRows = 64;

// Adds the gradients of a whole head, float32, to dq, dk and dv.
struct AttentionBackward {
  AttentionHead head;
  AttentionRows out, grad;  // of the head's dtype
  const float* logsumexp;
  float *dq, *dk, *dv;
  int64_t dq_row, dk_row, dv_row;  // elements
};
using attention_backward_fn = void (*)(const AttentionBackward& call);
LAMELLA_KERNEL(attention_backward_fn, attention_backward_on);

}  // namespace lamella::native
