// Attention that keeps no scores, and its gradients.
//
// Note [Attention in tiles]
//   A block has some rows of queries and goes through the keys. It keeps the largest score of each
//   row, the sum of exponentials relative to it, and the sum of values with these weights, all of
//   which it scales when a larger score appears (M. Milakov, N. Gimelshein, Online normalizer
//   calculation for softmax, 2018; T. Dao, FlashAttention-2, 2023). The logarithm of the sum is
//   saved, from which gradients compute the weights again: a kernel goes through the keys for the
//   gradient of queries, and one through the queries for those of keys and values, in a fixed
//   order and without atomics. Weights are rounded to the dtype before they are multiplied.
#pragma once
#include <cmath>

#include "lamella/cuda/kernels/attention_parameters.h"
#include "lamella/cuda/kernels/tiles.h"

namespace lamella::cuda {

#ifdef LAMELLA_KERNEL_BODIES

inline constexpr float kInfinity = __builtin_huge_valf();

template <class T>
LAMELLA_DEVICE float exponential(float x) {
#ifdef __CUDACC__
  if constexpr (sizeof(T) == 2) return __expf(x);
#endif
  return std::exp(x);
}
template <class T>
LAMELLA_DEVICE T* head_of(const AttentionOperand& x, int64_t batch, int64_t head) {
  return device_pointer<T>(x.data) + batch * x.batch + head * x.head;
}
LAMELLA_DEVICE float larger(float a, float b) { return b > a ? b : a; }
LAMELLA_DEVICE int padded(int width) { return (width + 15) / 16 * 16; }

// An element of the mask as what is added to the score. It is called, as masks are rare.
LAMELLA_DEVICE_CALLED float mask_at(const AttentionParameters& p, int64_t batch, int64_t head,
                                    int64_t i, int64_t j) {
  const int64_t at = batch * p.mask.batch + head * p.mask.head + i * p.mask.row + j * p.mask.column;
  if (p.mask_is_bool == 0) return device_pointer<const float>(p.mask.data)[at];
  return device_pointer<const uint8_t>(p.mask.data)[at] != 0 ? 0 : -kInfinity;
}
// Makes products of queries and keys scores, -infinity where query i does not see key j, which
// place(n, i, j) gives for element n. They are from query `first` on, and keys before `end`.
template <int N, class F>
LAMELLA_DEVICE void make_scores(const AttentionParameters& p, int64_t batch, int64_t head,
                                float (&s)[N][4], int first, int end, const F& place) {
  LAMELLA_UNROLL
  for (int n = 0; n < 4 * N; ++n) s[n / 4][n % 4] *= p.scale;
  if (p.mask.data == 0 && end <= p.keys && (p.causal == 0 || end <= first + 1)) return;
  LAMELLA_UNROLL
  for (int n = 0; n < 4 * N; ++n) {
    int i, j;
    place(n, i, j);
    float& score = s[n / 4][n % 4];
    if (i >= p.rows || j >= p.keys || (p.causal != 0 && j > i)) {
      score = -kInfinity;
    } else if (p.mask.data != 0) {
      score += mask_at(p, batch, head, i, j);
    }
  }
}
// Stores a warp's tiles times a number for each of a lane's two rows.
template <class T, int N>
LAMELLA_DEVICE void write_tiles(const AttentionOperand& x, int64_t batch, int64_t head, int row,
                                int rows, int column, int width, const float (&c)[N][4],
                                const float (&factor)[2]) {
  T* to = head_of<T>(x, batch, head) + row * x.row + column * x.column;
  LAMELLA_UNROLL
  for (int n = 0; n < 2 * N; ++n) {
    const int r = n % 2, j = n / 2 * 8;
    alignas(8) T pair[2];
    store_pair(pair, c[n / 2][2 * r] * factor[r], c[n / 2][2 * r + 1] * factor[r]);
    for (int e = 0; e < 2; ++e) {
      const bool inside = row + r * 8 < rows && column + j + e < width;
      if (inside) to[r * 8 * x.row + (j + e) * x.column] = pair[e];
    }
  }
}

template <class T, int D>
LAMELLA_DEVICE void attention(const AttentionParameters& p) {
  constexpr AttentionTile kTile = attention_tile(sizeof(T), D, false);
  constexpr int kPitch = row_pitch<T>(D), kKeys = kTile.columns, kWeights = row_pitch<T>(kKeys);
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  T* q = dynamic_shared<T>();
  T *k = q + kTile.rows * kPitch, *v = k + kKeys * kPitch;
  T* weights = v + kKeys * kPitch + warp * 16 * kWeights;
  const int64_t tiles = (int64_t{p.rows} + kTile.rows - 1) / kTile.rows;
  for (int64_t work = blockIdx.x; work < p.batch * p.heads * tiles; work += gridDim.x) {
    // With causal attention the last rows take longest, so they are first.
    const int first = static_cast<int>((tiles - 1 - work % tiles) * kTile.rows);
    const int64_t line = work / tiles, b = line / p.heads, h = line % p.heads;
    const int64_t key_head = h / (p.heads / p.key_heads);
    const int row = first + warp * 16 + lane / 4;
    const int end = p.causal != 0 && first + kTile.rows < p.keys ? first + kTile.rows : p.keys;
    auto load = [&](T* to, const AttentionOperand& x, int from, int width) {
      load_rows<D>(to, kKeys, head_of<const T>(x, b, key_head), x.row, x.column, from, p.keys,
                   width, p.vectors != 0);
      mark_copies();
    };
    float sums[D / 8][4] = {}, most[2] = {-kInfinity, -kInfinity}, total[2] = {};
    __syncthreads();
    load_rows<D>(q, kTile.rows, head_of<const T>(p.q, b, h), p.q.row, p.q.column, first, p.rows,
                 p.width, p.vectors != 0);
    load(k, p.k, 0, p.width);
    for (int j0 = 0; j0 < end; j0 += kKeys) {
      __syncthreads();
      load(v, p.v, j0, p.value_width);
      wait_for_copies<1>();
      __syncthreads();
      float s[kKeys / 8][4] = {};
      multiply_tiles<true>(s, q + warp * 16 * kPitch, kPitch, k, kPitch, padded(p.width));
      __syncthreads();
      // The next keys arrive while the values are summed.
      load(k, p.k, j0 + kKeys < end ? j0 + kKeys : j0, p.width);
      make_scores(p, b, h, s, first, j0 + kKeys, [&](int n, int& i, int& j) {
        i = row + n % 4 / 2 * 8;
        j = j0 + n / 4 * 8 + lane % 4 * 2 + n % 2;
      });
      LAMELLA_UNROLL
      for (int r = 0; r < 2; ++r) {
        float now = most[r];
        LAMELLA_UNROLL
        for (int n = 0; n < kKeys / 4; ++n) now = larger(now, s[n / 2][2 * r + n % 2]);
        for (int by = 1; by < 4; by *= 2) now = larger(now, __shfl_xor_sync(~0U, now, by));
        const float base = now == -kInfinity ? 0 : now, kept = exponential<T>(most[r] - base);
        most[r] = now;
        total[r] *= kept;
        LAMELLA_UNROLL
        for (int n = 0; n < D / 4; ++n) sums[n / 2][2 * r + n % 2] *= kept;
        LAMELLA_UNROLL
        for (int n = 0; n < kKeys / 4; ++n) {
          float& weight = s[n / 2][2 * r + n % 2];
          weight = exponential<T>(weight - base);
          total[r] += weight;
        }
      }
      store_tiles(weights, kWeights, s);
      wait_for_copies<1>();
      __syncthreads();
      multiply_tiles<false>(sums, weights, kWeights, v, kPitch, kKeys, padded(p.value_width) / 8);
    }
    wait_for_copies<0>();
    float scale[2];
    for (int r = 0; r < 2; ++r) {
      for (int by = 1; by < 4; by *= 2) total[r] += __shfl_xor_sync(~0U, total[r], by);
      // A query that sees no key gives zeros.
      scale[r] = total[r] == 0 ? 0 : 1 / total[r];
      if (lane % 4 == 0 && row + r * 8 < p.rows) {
        device_pointer<float>(p.logsumexp)[line * p.rows + row + r * 8] =
            total[r] == 0 ? -kInfinity : most[r] + std::log(total[r]);
      }
    }
    write_tiles<T>(p.out, b, h, row, p.rows, lane % 4 * 2, p.value_width, sums, scale);
  }
}

// delta = the sum of out * grad along each of the warp's rows.
template <class T>
LAMELLA_DEVICE void sum_products(const AttentionParameters& p, int64_t b, int64_t h, int row) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  LAMELLA_LOOP
  for (int i = row; i < row + 16 && i < p.rows; ++i) {
    const T* out = head_of<const T>(p.out, b, h) + i * p.out.row;
    const T* grad = head_of<const T>(p.grad, b, h) + i * p.grad.row;
    float sum = 0;
    for (int j = lane; j < p.value_width; j += 32) {
      sum += converted<float>(out[j * p.out.column]) * converted<float>(grad[j * p.grad.column]);
    }
    for (int by = 1; by < 32; by *= 2) sum += __shfl_xor_sync(~0U, sum, by);
    if (lane == 0) device_pointer<float>(p.delta)[(b * p.heads + h) * p.rows + i] = sum;
  }
  __syncwarp();
}

// The gradients of keys and values, or that of queries before: own rows x, the others y. Heads of
// 256 elements are computed in two halves, for which registers suffice.
template <class T, int D, bool for_keys>
LAMELLA_DEVICE void attention_backward(const AttentionParameters& p) {
  constexpr AttentionTile kTile = attention_tile(sizeof(T), D, true);
  constexpr int kPitch = row_pitch<T>(D), kOthers = kTile.columns;
  constexpr int kWeights = row_pitch<T>(kOthers), kPart = D < 128 ? D : 128, kParts = D / kPart;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  T *x = dynamic_shared<T>(), *x_value = x + kTile.rows * kPitch;
  T *y = x_value + kTile.rows * kPitch, *y_value = y + kOthers * kPitch;
  T* weights = y_value + kOthers * kPitch + warp * 16 * kWeights;
  const int own = for_keys ? p.keys : p.rows, others = for_keys ? p.rows : p.keys;
  const int64_t heads = for_keys ? p.key_heads : p.heads, shared = p.heads / p.key_heads;
  const int64_t tiles = (int64_t{own} + kTile.rows - 1) / kTile.rows * kParts;
  for (int64_t work = blockIdx.x; work < p.batch * heads * tiles; work += gridDim.x) {
    const int first = static_cast<int>(work % tiles / kParts * kTile.rows);
    const int part = static_cast<int>(work % kParts) * kPart, row = first + warp * 16 + lane / 4;
    const int64_t b = work / tiles / heads, h = work / tiles % heads;
    auto load = [&](T* to, int count, const AttentionOperand& from, int64_t head, int at, int rows,
                    int width) {
      load_rows<D>(to, count, head_of<const T>(from, b, head), from.row, from.column, at, rows,
                   width, p.vectors != 0);
    };
    __syncthreads();
    load(x, kTile.rows, for_keys ? p.k : p.q, h, first, own, p.width);
    load(x_value, kTile.rows, for_keys ? p.v : p.grad, h, first, own, p.value_width);
    if constexpr (!for_keys) sum_products<T>(p, b, h, first + warp * 16);
    float sums[kPart / 8][4] = {}, value_sums[for_keys ? kPart / 8 : 1][4] = {};
    const int begin = for_keys && p.causal != 0 ? first / kOthers * kOthers : 0;
    const bool ends = !for_keys && p.causal != 0 && first + kTile.rows < others;
    for (int64_t g = 0; g < (for_keys ? shared : 1); ++g) {
      const int64_t query_head = for_keys ? h * shared + g : h;
      const int64_t other_head = for_keys ? query_head : h / shared;
      const int64_t line = (b * p.heads + query_head) * p.rows;
      for (int y0 = begin; y0 < (ends ? first + kTile.rows : others); y0 += kOthers) {
        __syncthreads();
        load(y, kOthers, for_keys ? p.q : p.k, other_head, y0, others, p.width);
        load(y_value, kOthers, for_keys ? p.grad : p.v, other_head, y0, others, p.value_width);
        mark_copies();
        wait_for_copies<0>();
        __syncthreads();
        float s[kOthers / 8][4] = {}, d[kOthers / 8][4] = {};
        multiply_tiles<true>(s, x + warp * 16 * kPitch, kPitch, y, kPitch, padded(p.width));
        multiply_tiles<true>(d, x_value + warp * 16 * kPitch, kPitch, y_value, kPitch,
                             padded(p.value_width));
        auto place = [&](int n, int& i, int& j) {
          (for_keys ? j : i) = row + n % 4 / 2 * 8;
          (for_keys ? i : j) = y0 + n / 4 * 8 + lane % 4 * 2 + n % 2;
        };
        make_scores(p, b, query_head, s, for_keys ? y0 : first,
                    for_keys ? first + kTile.rows : y0 + kOthers, place);
        LAMELLA_UNROLL
        for (int n = 0; n < kOthers / 2; ++n) {
          int i, j;
          place(n, i, j);
          const bool inside = i < p.rows;
          const float sum =
              inside ? device_pointer<const float>(p.logsumexp)[line + i] : -kInfinity;
          const float delta = inside ? device_pointer<const float>(p.delta)[line + i] : 0;
          float &weight = s[n / 4][n % 4], &change = d[n / 4][n % 4];
          // Infinite keys have scores of NaN where there is no query, which a factor of 0 keeps.
          const bool sees = sum != -kInfinity;
          weight = sees ? exponential<T>(weight - sum) : 0;
          change = sees ? weight * (change - delta) : 0;
        }
        if constexpr (for_keys) {
          store_tiles(weights, kWeights, s);
          __syncwarp();
          multiply_tiles<false>(value_sums, weights, kWeights, y_value + part, kPitch, kOthers,
                                (padded(p.value_width) - part) / 8);
          __syncwarp();
        }
        store_tiles(weights, kWeights, d);
        __syncwarp();
        multiply_tiles<false>(sums, weights, kWeights, y + part, kPitch, kOthers,
                              (padded(p.width) - part) / 8);
      }
    }
    const float scales[2] = {p.scale, p.scale}, ones[2] = {1, 1};
    const int column = part + lane % 4 * 2;
    write_tiles<T>(for_keys ? p.dk : p.dq, b, h, row, own, column, p.width, sums, scales);
    if constexpr (for_keys) {
      write_tiles<T>(p.dv, b, h, row, own, column, p.value_width, value_sums, ones);
    }
  }
}

#endif

// Rows of Note [Kernels of blocks]: attention_f16_64, for heads of up to 64 elements.
#define LAMELLA_ATTENTION_KERNEL(name, suffix, T, D, backward, ...)                           \
  LAMELLA_BLOCK_KERNEL(name##_##suffix##_##D, attention_tile(sizeof(T), D, backward).threads, \
                       AttentionParameters, __VA_ARGS__)
#define LAMELLA_ATTENTION_WIDTH(suffix, T, D)                                                      \
  LAMELLA_ATTENTION_KERNEL(attention, suffix, T, D, false, attention<T, D>)                        \
  LAMELLA_ATTENTION_KERNEL(attention_queries, suffix, T, D, true, attention_backward<T, D, false>) \
  LAMELLA_ATTENTION_KERNEL(attention_keys, suffix, T, D, true, attention_backward<T, D, true>)
#define LAMELLA_ATTENTION_DTYPE(f, T) \
  LAMELLA_ATTENTION_WIDTH(f, T, 64)   \
  LAMELLA_ATTENTION_WIDTH(f, T, 128) LAMELLA_ATTENTION_WIDTH(f, T, 256)
#define LAMELLA_ATTENTION_KERNELS     \
  LAMELLA_ATTENTION_DTYPE(f32, float) \
  LAMELLA_ATTENTION_DTYPE(f16, StoredHalf) LAMELLA_ATTENTION_DTYPE(bf16, StoredBFloat16)

}  // namespace lamella::cuda
