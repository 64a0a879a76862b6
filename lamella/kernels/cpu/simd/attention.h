// Attention of one head over a block of queries, one kernel for each CPU capability.
#pragma once
#include <cstdint>

#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// softmax(q k^T * scale + mask) v for queries [first, last) of one head; float32. Rows of q, k, v
// and out are contiguous; the strides are those between rows. mask holds numbers to add, with
// strides of its own (0 where it is broadcast), or is null.
struct AttentionHead {
  const float* q;
  const float* k;
  const float* v;
  float* out;
  float* logsumexp;  // one per query
  const float* mask;
  int64_t q_row, k_row, v_row, out_row, mask_row, mask_column;
  int64_t keys, width, value_width;
  float scale;
  bool causal;
};
using attention_fn = void (*)(const AttentionHead& head, int64_t first, int64_t last);
LAMELLA_DECLARE_DISPATCH(attention_fn, attention_stub);

// Queries that one call should get.
inline constexpr int64_t kAttentionRows = 64;

}  // namespace lamella::native
