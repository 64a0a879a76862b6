// The backward of attention: Note [Attention by tiles]. The weights of a tile are computed again
// from the forward's logsumexp; with P the weights and D the sums over each query's grad * out,
//   dv = P^T grad,  dS = P * (grad v^T - D) * scale,  dq = dS k,  dk = dS^T q.
// Dropout multiplies P in the first, and grad v^T in the second, with its factors.
#include "lamella/kernels/cpu/simd/attention.h"

#include <algorithm>

#include "lamella/kernels/cpu/simd/attention_tiles.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {
using namespace tiles;

constexpr int64_t kQueries = kAttentionRows;

// Adds `count` rows of `width` floats, `from_row` apart, to the rows at `to`.
void add_rows(const float* from, int64_t from_row, int64_t count, int64_t width, float* to,
              int64_t to_row) {
  for (int64_t i = 0; i < count; ++i) {
#pragma GCC ivdep
    for (int64_t d = 0; d < width; ++d) to[i * to_row + d] += from[i * from_row + d];
  }
}

// For a vector of queries, replaces scores by weights, and gradients of weights by gradients of
// scores. Weights are multiplied by the dropout factors if there are any.
void scores_gradient(float* scores, float* grads, const float* factors, int64_t columns,
                     int64_t keys, Lanes logsumexp, Lanes delta, Lanes scale) {
  for (int64_t j = 0; j < keys; ++j) {
    Lanes weight = exp2_of(load(scores + j * columns) - logsumexp);
    Lanes grad = load(grads + j * columns), kept = weight;
    if (factors != nullptr) {
      Lanes by = load(factors + j * columns);
      grad *= by;
      kept *= by;
    }
    store(scores + j * columns, kept);
    store(grads + j * columns, weight * ((grad - delta) * scale));
  }
}

void attention_backward_kernel(const AttentionBackward& call) {
  const AttentionHead& h = call.head;
  int64_t width = whole_vectors(h.width), value_width = whole_vectors(h.value_width);
  Scratch scratch(h.keys * (width + value_width) + kQueries * (4 * width + 3 * value_width + 2) +
                  kKeys * (width + value_width + 4 * kQueries) + 128);
  float* key_sums = scratch.take(h.keys * width);
  float* value_sums = scratch.take(h.keys * value_width);
  float* query_sums = scratch.take(kQueries * width);
  float* queries = scratch.take(kQueries * width);
  float* grads = scratch.take(kQueries * value_width);
  float* query_room = scratch.take(kQueries * width);
  float* out_room = scratch.take(kQueries * value_width);
  float* grad_room = scratch.take(kQueries * value_width);
  float* key_room = scratch.take(kKeys * width);
  float* value_room = scratch.take(kKeys * value_width);
  float* scores = scratch.take(kKeys * kQueries);
  float* score_grads = scratch.take(kKeys * kQueries);
  float* mask = scratch.take(h.mask != nullptr ? kKeys * kQueries : 0);
  int64_t dropped = h.factors != nullptr ? kKeys * kQueries : 0;
  float* factors = scratch.take(dropped);
  std::fill(factors, factors + dropped, 0.0f);
  float* logsumexp = scratch.take(kQueries);
  float* delta = scratch.take(kQueries);
  float by_one[kTileRows];
  for (float& one : by_one) one = 1;
  std::memset(key_sums, 0, static_cast<size_t>(h.keys * width) * sizeof(float));
  std::memset(value_sums, 0, static_cast<size_t>(h.keys * value_width) * sizeof(float));

  RowReader read_wide(h.dtype, h.width), read_values(h.dtype, h.value_width);
  for (int64_t first = 0; first < h.queries; first += kQueries) {
    int64_t rows = h.queries - first < kQueries ? h.queries - first : kQueries;
    int64_t columns = whole_vectors(rows);
    Rows q = read_wide.read(h.q, first, rows, query_room, true);
    Rows g = read_values.read(call.grad, first, rows, grad_room, true);
    Rows out = read_values.read(call.out, first, rows, out_room, false);
    queries_as_columns(q, rows, h.width, static_cast<float>(static_cast<double>(h.scale) * kLog2E),
                       queries, columns);
    queries_as_columns(g, rows, h.value_width, 1, grads, columns);
    for (int64_t i = 0; i < columns; ++i) {
      float sum = 0, log = i < rows ? call.logsumexp[first + i] : kLeast;
      for (int64_t d = 0; d < h.value_width && i < rows; ++d) {
        sum += g.data[i * g.row + d] * out.data[i * out.row + d];
      }
      delta[i] = sum;
      // The query sees no key, so all its weights are 0.
      logsumexp[i] = log == kLeast ? -kLeast : log * static_cast<float>(kLog2E);
    }
    Scores compute(h, first, columns, queries, mask);
    int64_t visible = h.causal && first + rows < h.keys ? first + rows : h.keys;
    for (int64_t key = 0; key < visible; key += kKeys) {
      int64_t count = visible - key < kKeys ? visible - key : kKeys;
      Rows k = read_wide.read(h.k, key, count, key_room, true);
      Rows v = read_values.read(h.v, key, count, value_room, false);
      compute.compute(k, key, count, rows, scores);
      compute.products(v, h.value_width, grads, key, count, score_grads);
      if (h.factors != nullptr) {
        factors_as_columns(h, first, rows, key, count, factors, columns);
      }
      for (int64_t x = 0; x < columns; x += kLanes) {
        int64_t seen = compute.seen(x, kLanes, key, count);
        scores_gradient(scores + x, score_grads + x, h.factors != nullptr ? factors + x : nullptr,
                        columns, seen, load(logsumexp + x), load(delta + x), all(h.scale));
      }
      for (int64_t j = 0; j < count; j += kTileRows) {
        int64_t group = count - j < kTileRows ? count - j : kTileRows;
        // Skips queries before the first vector that sees these keys.
        int64_t from = h.causal && key + j > first ? (key + j - first) / kLanes * kLanes : 0;
        if (from >= rows) break;
        multiply(scores + j * columns + from, columns, 1, g.data + from * g.row, g.row,
                 value_sums + (key + j) * value_width, value_width, group, value_width, rows - from,
                 by_one);
        multiply(score_grads + j * columns + from, columns, 1, q.data + from * q.row, q.row,
                 key_sums + (key + j) * width, width, group, width, rows - from, by_one);
      }
      for (int64_t i = 0; i < rows; i += kTileRows) {
        int64_t group = rows - i > 2 ? kTileRows : rows - i;
        multiply(score_grads + i, 1, columns, k.data, k.row, query_sums + i * width, width, group,
                 width, compute.seen(i, kTileRows, key, count), key == 0 ? nullptr : by_one);
      }
    }
    if (visible > 0) {
      add_rows(query_sums, width, rows, h.width, call.dq + first * call.dq_row, call.dq_row);
    }
  }
  add_rows(key_sums, width, h.keys, h.width, call.dk, call.dk_row);
  add_rows(value_sums, value_width, h.keys, h.value_width, call.dv, call.dv_row);
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(attention_backward_on, &attention_backward_kernel);

}  // namespace lamella::native
