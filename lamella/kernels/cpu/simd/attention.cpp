// The forward of attention: Note [Attention by tiles].
#include "lamella/kernels/cpu/simd/attention.h"

#include <algorithm>

#include "lamella/kernels/cpu/simd/attention_tiles.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {
using namespace tiles;

// Replaces the scores of the vector of queries by their powers of 2, relative to the maximum, and
// brings its maximum, its sum and the factor for what was summed before up to date.
void weigh(float* scores, int64_t columns, int64_t keys, float* most, float* total,
           float* factors) {
  Lanes before = load(most), now = before;
  for (int64_t j = 0; j < keys; ++j) now = larger(load(scores + j * columns), now);
  // While a query has seen nothing, its scores are all -infinity, and so are their differences to 0.
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

void attention_kernel(const AttentionForward& call, int64_t first, int64_t last) {
  const AttentionHead& h = call.head;
  int64_t rows = last - first, columns = whole_vectors(rows);
  int64_t width = whole_vectors(h.width), value_width = whole_vectors(h.value_width);
  Scratch scratch(columns * (width + value_width + 2 * kKeys + 3) + kKeys * (width + value_width) +
                  64);
  float* queries = scratch.take(width * columns);
  float* scores = scratch.take(kKeys * columns);
  float* mask = scratch.take(h.mask != nullptr ? kKeys * columns : 0);
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
    Rows values = read_values.read(h.v, key, count, value_room, true);
    for (int64_t i = 0; i < rows; i += kTileRows) {
      // There is memory for whole tiles, which cost no more than two rows.
      int64_t group = rows - i > 2 ? kTileRows : rows - i;
      int64_t seen = compute.seen(i, kTileRows, key, count);
      multiply(scores + i, 1, columns, values.data, values.row, sums + i * value_width, value_width,
               group, value_width, seen, key == 0 ? nullptr : factors + i);
    }
  }
  ConvertFn narrow = h.dtype == kFloat ? nullptr : get_convert(kFloat, h.dtype);
  for (int64_t i = 0; i < rows; ++i) {
    float factor = total[i] == 0 ? 0 : 1 / total[i];
    float* sum = sums + i * value_width;
    char* out = call.out + (first + i) * call.out_row;
    float* to = narrow == nullptr ? reinterpret_cast<float*>(out) : sum;
#pragma GCC ivdep
    for (int64_t d = 0; d < h.value_width; ++d) to[d] = visible > 0 ? sum[d] * factor : 0;
    if (narrow != nullptr) narrow(sum, out, h.value_width);
    call.logsumexp[first + i] = total[i] == 0 ? kLeast : (most[i] + std::log2(total[i])) * kLn2;
  }
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_DISPATCH(attention_stub, &attention_kernel);

}  // namespace lamella::native
