// The forward of attention: Note [Attention by tiles].
#include "lamella/kernels/cpu/simd/attention.h"

#include <algorithm>

#include "lamella/kernels/cpu/simd/attention_tiles.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {
using namespace tiles;

// Replaces the scores of a vector of queries by 2^(score - maximum), and updates the maximum, the
// sum of these powers and the factor by which earlier sums are scaled.
void weigh(float* scores, int64_t columns, int64_t keys, float* most, float* total,
           float* factors) {
  Lanes before = load(most), now = before;
  // Several chains, as each step of one waits for the step before.
  constexpr int64_t kChains = 4;
  Lanes largest[kChains] = {now, now, now, now};
  int64_t key = 0;
  for (; key + kChains <= keys; key += kChains) {
    for (int64_t c = 0; c < kChains; ++c) {
      largest[c] = larger(load(scores + (key + c) * columns), largest[c]);
    }
  }
  for (; key < keys; ++key) now = larger(load(scores + key * columns), now);
  for (Lanes one : largest) now = larger(one, now);
  // While a query has seen no key, its scores are all -infinity; subtracting 0 avoids inf - inf.
  Lanes shift = now == all(kLeast) ? Lanes{} : now;
  Lanes sums{};
  for (int64_t j = 0; j < keys; ++j) {
    Lanes weight = exp2_of(load(scores + j * columns) - shift);
    store(scores + j * columns, weight);
    sums += weight;
  }
  Lanes factor = exp2_of(before - shift);
  store(most, now);
  store(total, multiply_add(load(total), factor, sums));
  store(factors, factor);
}

void write_result(const AttentionForward& call, int64_t query, float* sum, float most,
                  float total) {
  const AttentionHead& h = call.head;
  float factor = total == 0 ? 0 : 1 / total;
  char* out = call.out + query * call.out_row;
  float* to = h.dtype == kFloat ? reinterpret_cast<float*>(out) : sum;
#pragma GCC ivdep
  for (int64_t d = 0; d < h.value_width; ++d) to[d] = sum[d] * factor;
  if (h.dtype != kFloat) get_convert(kFloat, h.dtype)(sum, out, h.value_width);
  call.logsumexp[query] = total == 0 ? kLeast : (most + std::log2(total)) * kLn2;
}

// ---- Few queries: vectors along the keys' rows, and then along the keys ----

constexpr int64_t kMaxFewQueries = kLanes / 4;

float sum_of(Lanes v) {
  float parts[kLanes], sum = 0;
  store(parts, v);
  for (float part : parts) sum += part;
  return sum;
}
// The dot products of q with four rows. Rows are whole vectors, or q is 0 past their end.
Four four_products(const float* q, const float* rows, int64_t row, int64_t width) {
  Lanes sums[4] = {};
  for (int64_t d = 0; d < width; d += kLanes) {
    Lanes by = load(q + d);
    for (int r = 0; r < 4; ++r) sums[r] = multiply_add(by, load(rows + r * row + d), sums[r]);
  }
  Four parts[4];
  for (int r = 0; r < 4; ++r) {
    float lanes[kLanes];
    store(lanes, sums[r]);
    parts[r] = Four{};
    for (int64_t at = 0; at < kLanes; at += 4) {
      parts[r] += *reinterpret_cast<const FourInMemory*>(lanes + at);
    }
  }
  auto joined = [](Four a, Four b) {
    return __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
  };
  Four low = joined(parts[0], parts[1]), high = joined(parts[2], parts[3]);
  return __builtin_shufflevector(low, high, 0, 1, 4, 5) +
         __builtin_shufflevector(low, high, 2, 3, 6, 7);
}

void attend_few(const AttentionForward& call, int64_t first, int64_t last) {
  const AttentionHead& h = call.head;
  int64_t width = whole_vectors(h.width), value_width = whole_vectors(h.value_width);
  int64_t rows = last - first;
  Scratch scratch((kMaxFewQueries + kKeys) * (width + value_width));
  float* queries = scratch.take(kMaxFewQueries * width);
  float* sums = scratch.take(kMaxFewQueries * value_width);
  float* key_room = scratch.take(kKeys * width);
  float* value_room = scratch.take(kKeys * value_width);
  float most[kMaxFewQueries], total[kMaxFewQueries], scores[kKeys];
  RowReader read_wide(h.dtype, h.width), read_values(h.dtype, h.value_width);
  Rows q = read_wide.read(h.q, first, rows, key_room, false);
  const auto scale = static_cast<float>(static_cast<double>(h.scale) * kLog2E);
  for (int64_t i = 0; i < rows; ++i) {
    most[i] = kLeast;
    total[i] = 0;
    for (int64_t d = 0; d < width; ++d) {
      queries[i * width + d] = d < h.width ? q.data[i * q.row + d] * scale : 0;
    }
    for (int64_t d = 0; d < value_width; ++d) sums[i * value_width + d] = 0;
  }
  int64_t visible = h.causal && last < h.keys ? last : h.keys;
  for (int64_t key = 0; key < visible; key += kKeys) {
    int64_t count = std::min(kKeys, visible - key);
    Rows keys = read_wide.read(h.k, key, count, key_room, true);
    Rows values = read_values.read(h.v, key, count, value_room, true);
    for (int64_t i = 0; i < rows; ++i) {
      int64_t seen = h.causal ? std::min(count, first + i + 1 - key) : count;
      if (seen <= 0) continue;
      const float* query = queries + i * width;
      int64_t j = 0;
      for (; j + 4 <= seen; j += 4) {
        *reinterpret_cast<FourInMemory*>(scores + j) =
            four_products(query, keys.data + j * keys.row, keys.row, width);
      }
      for (; j < seen; ++j) {
        scores[j] = four_products(query, keys.data + j * keys.row, 0, width)[0];
      }
      if (h.mask != nullptr) {
        const float* mask = h.mask + (first + i) * h.mask_row + key * h.mask_column;
        for (j = 0; j < seen; ++j) {
          scores[j] += mask[j * h.mask_column] * static_cast<float>(kLog2E);
        }
      }
      for (j = seen; j < kKeys; ++j) scores[j] = kLeast;
      Lanes lanes = all(most[i]), weights{};
      for (j = 0; j < kKeys; j += kLanes) lanes = larger(load(scores + j), lanes);
      float now = most[i];
      for (int64_t lane = 0; lane < kLanes; ++lane) now = lanes[lane] > now ? lanes[lane] : now;
      float shift = now == kLeast ? 0 : now;
      for (j = 0; j < kKeys; j += kLanes) {
        Lanes weight = exp2_of(load(scores + j) - all(shift));
        store(scores + j, weight);
        weights += weight;
      }
      float factor = exp2_of(all(most[i] - shift))[0];
      total[i] = total[i] * factor + sum_of(weights);
      most[i] = now;
      if (h.factors != nullptr) {
        const float* by = h.factors + (first + i) * h.factors_row + key;
        for (j = 0; j < seen; ++j) scores[j] *= by[j];
      }
      float* sum = sums + i * value_width;
      int64_t d = 0;
      for (; d + 4 * kLanes <= value_width; d += 4 * kLanes) {
        tile<1, 4>(scores, 0, 1, values.data + d, values.row, sum + d, 0, seen, &factor);
      }
      if (d < value_width) {
        multiply(scores, 0, 1, values.data + d, values.row, sum + d, 0, 1, value_width - d, seen,
                 &factor);
      }
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    write_result(call, first + i, sums + i * value_width, most[i], total[i]);
  }
}

void attention_kernel(const AttentionForward& call, int64_t first, int64_t last) {
  if (last - first <= kMaxFewQueries) return attend_few(call, first, last);
  const AttentionHead& h = call.head;
  int64_t rows = last - first, columns = whole_vectors(rows);
  int64_t width = whole_vectors(h.width), value_width = whole_vectors(h.value_width);
  Scratch scratch(columns * (width + value_width + 3 * kKeys + 3) + kKeys * (width + value_width) +
                  64);
  float* queries = scratch.take(width * columns);
  float* scores = scratch.take(kKeys * columns);
  float* mask = scratch.take(h.mask != nullptr ? kKeys * columns : 0);
  int64_t dropped = h.factors != nullptr ? kKeys * columns : 0;
  float* kept = scratch.take(dropped);
  std::fill(kept, kept + dropped, 0.0f);
  float* sums = scratch.take(columns * value_width);
  float* key_room = scratch.take(kKeys * width);
  float* value_room = scratch.take(kKeys * value_width);
  float* most = scratch.take(columns);
  float* total = scratch.take(columns);
  float* factors = scratch.take(columns);
  for (int64_t i = 0; i < columns; ++i) {
    most[i] = kLeast;
    total[i] = 0;
  }

  RowReader read_wide(h.dtype, h.width), read_values(h.dtype, h.value_width);
  queries_as_columns(read_wide.read(h.q, first, rows, key_room, false), rows, h.width,
                     static_cast<float>(static_cast<double>(h.scale) * kLog2E), queries, columns);
  Scores compute(h, first, columns, queries, mask);
  int64_t visible = h.causal && last < h.keys ? last : h.keys;
  for (int64_t key = 0; key < visible; key += kKeys) {
    int64_t count = visible - key < kKeys ? visible - key : kKeys;
    compute.compute(read_wide.read(h.k, key, count, key_room, false), key, count, rows, scores);
    for (int64_t x = 0; x < columns; x += kLanes) {
      weigh(scores + x, columns, compute.seen(x, kLanes, key, count), most + x, total + x,
            factors + x);
    }
    if (h.factors != nullptr) {
      factors_as_columns(h, first, rows, key, count, kept, columns);
      for (int64_t x = 0; x < count * columns; x += kLanes) {
        store(scores + x, load(scores + x) * load(kept + x));
      }
    }
    Rows values = read_values.read(h.v, key, count, value_room, true);
    for (int64_t i = 0; i < rows; i += kTileRows) {
      // A whole tile costs no more than two rows, and there is memory for it.
      int64_t group = rows - i > 2 ? kTileRows : rows - i;
      int64_t seen = compute.seen(i, kTileRows, key, count);
      multiply(scores + i, 1, columns, values.data, values.row, sums + i * value_width, value_width,
               group, value_width, seen, key == 0 ? nullptr : factors + i);
    }
  }
  if (visible <= 0) std::fill(sums, sums + columns * value_width, 0.0f);
  for (int64_t i = 0; i < rows; ++i) {
    write_result(call, first + i, sums + i * value_width, most[i], total[i]);
  }
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(attention_on, &attention_kernel);

}  // namespace lamella::native
