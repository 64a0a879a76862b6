// Attention by blocks of keys, with a running maximum and sum for each query, so that the whole
// matrix of scores is never stored.
// T. Dao et al., FlashAttention, NeurIPS 2022; M. Milakov and N. Gimelshein, Online normalizer
// calculation for softmax, arXiv:1805.02867.
#include "lamella/kernels/cpu/simd/attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

constexpr int64_t kKeys = 64;  // of a block
constexpr float kLeast = -std::numeric_limits<float>::infinity();

#if defined(__x86_64__)
constexpr int64_t kWidth = sizeof(VecF) / sizeof(float);
inline VecF multiply_add(VecF a, VecF b, VecF c) {
#if defined(CPU_CAPABILITY_AVX512)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(CPU_CAPABILITY_AVX2)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}
inline VecF exp_of(VecF x) { return LAMELLA_SLEEF_F(exp, u10)(x); }

// c[R x 2 vectors] = or += a[R x k] b[k x 2 vectors].
template <int R>
inline void tile(const float* a, int64_t a_row, const float* b, int64_t b_row, float* c,
                 int64_t c_row, int64_t k, bool add) {
  VecF sum[R][2];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < 2; ++v) {
      sum[r][v] = add ? v_load<float>(c + r * c_row + v * kWidth) : v_set<float>(0);
    }
  }
  for (int64_t i = 0; i < k; ++i) {
    VecF b0 = v_load<float>(b + i * b_row), b1 = v_load<float>(b + i * b_row + kWidth);
    for (int r = 0; r < R; ++r) {
      VecF factor = v_set<float>(a[r * a_row + i]);
      sum[r][0] = multiply_add(factor, b0, sum[r][0]);
      sum[r][1] = multiply_add(factor, b1, sum[r][1]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < 2; ++v) v_store<float>(c + r * c_row + v * kWidth, sum[r][v]);
  }
}
constexpr int64_t kTileColumns = 2 * kWidth;
#else
constexpr int64_t kWidth = 1;
constexpr int64_t kTileColumns = 1 << 30;
template <int R>
inline void tile(const float*, int64_t, const float*, int64_t, float*, int64_t, int64_t, bool) {}
#endif

// c[rows x columns] = or += a[rows x k] b[k x columns].
void multiply(const float* a, int64_t a_row, const float* b, int64_t b_row, float* c, int64_t c_row,
              int64_t rows, int64_t columns, int64_t k, bool add) {
  int64_t j = 0;
  for (; j + kTileColumns <= columns; j += kTileColumns) {
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4) {
      tile<4>(a + i * a_row, a_row, b + j, b_row, c + i * c_row + j, c_row, k, add);
    }
    for (; i < rows; ++i) {
      tile<1>(a + i * a_row, a_row, b + j, b_row, c + i * c_row + j, c_row, k, add);
    }
  }
  int64_t rest = columns - j;
  if (rest <= 0) return;
  for (int64_t i = 0; i < rows; ++i) {
    float* row = c + i * c_row + j;
    if (!add) {
      for (int64_t x = 0; x < rest; ++x) row[x] = 0;
    }
    for (int64_t l = 0; l < k; ++l) {
      float factor = a[i * a_row + l];
      const float* other = b + l * b_row + j;
      for (int64_t x = 0; x < rest; ++x) row[x] += factor * other[x];
    }
  }
}

// Replaces a row of scores by exp(score - shift) and returns their sum. n is a multiple of kWidth.
float exp_row(float* row, float shift, int64_t n) {
#if defined(__x86_64__)
  const VecF by = v_set<float>(shift);
  VecF sums = v_set<float>(0);
  for (int64_t i = 0; i < n; i += kWidth) {
    VecF e = exp_of(v_load<float>(row + i) - by);
    sums += e;
    v_store<float>(row + i, e);
  }
  float parts[kWidth];
  v_store<float>(parts, sums);
  float sum = 0;
  for (float part : parts) sum += part;
  return sum;
#else
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += row[i] = std::exp(row[i] - shift);
  return sum;
#endif
}

void attention_kernel(const AttentionHead& h, int64_t first, int64_t last) {
  int64_t rows = last - first;
  std::vector<float> queries(static_cast<size_t>(rows * h.width));
  std::vector<float> keys(static_cast<size_t>(h.width * kKeys));
  std::vector<float> scores(static_cast<size_t>(rows * kKeys));
  std::vector<float> sums(static_cast<size_t>(rows * h.value_width), 0.0f);
  std::vector<float> most(static_cast<size_t>(rows), kLeast), total(static_cast<size_t>(rows), 0);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t d = 0; d < h.width; ++d) {
      queries[static_cast<size_t>(i * h.width + d)] = h.q[(first + i) * h.q_row + d] * h.scale;
    }
  }
  int64_t visible = h.causal && last < h.keys ? last : h.keys;
  for (int64_t block = 0; block < visible; block += kKeys) {
    int64_t count = visible - block < kKeys ? visible - block : kKeys;
    // Keys as columns; places past the last one are zero here and masked below.
    for (int64_t j = 0; j < kKeys; ++j) {
      const float* key = h.k + (block + j) * h.k_row;
      for (int64_t d = 0; d < h.width; ++d) {
        keys[static_cast<size_t>(d * kKeys + j)] = j < count ? key[d] : 0;
      }
    }
    multiply(queries.data(), h.width, keys.data(), kKeys, scores.data(), kKeys, rows, kKeys,
             h.width, false);
    for (int64_t i = 0; i < rows; ++i) {
      float* row = scores.data() + i * kKeys;
      if (h.mask != nullptr) {
        const float* mask = h.mask + (first + i) * h.mask_row + block * h.mask_column;
        for (int64_t j = 0; j < count; ++j) row[j] += mask[j * h.mask_column];
      }
      int64_t end = count;
      if (h.causal && first + i + 1 - block < end) end = first + i + 1 - block;
      for (int64_t j = end > 0 ? end : 0; j < kKeys; ++j) row[j] = kLeast;
      auto at = static_cast<size_t>(i);
      float now = most[at];
      for (int64_t j = 0; j < kKeys; ++j) now = row[j] > now ? row[j] : now;
      if (now == kLeast) {  // nothing seen so far
        for (int64_t j = 0; j < kKeys; ++j) row[j] = 0;
        continue;
      }
      float factor = std::exp(most[at] - now);
      total[at] = total[at] * factor + exp_row(row, now, kKeys);
      most[at] = now;
      if (factor != 1) {
        float* sum = sums.data() + i * h.value_width;
        for (int64_t d = 0; d < h.value_width; ++d) sum[d] *= factor;
      }
    }
    multiply(scores.data(), kKeys, h.v + block * h.v_row, h.v_row, sums.data(), h.value_width, rows,
             h.value_width, count, true);
  }
  for (int64_t i = 0; i < rows; ++i) {
    auto at = static_cast<size_t>(i);
    float scale = total[at] == 0 ? 0 : 1 / total[at];
    float* to = h.out + (first + i) * h.out_row;
    const float* sum = sums.data() + i * h.value_width;
    for (int64_t d = 0; d < h.value_width; ++d) to[d] = sum[d] * scale;
    h.logsumexp[first + i] = total[at] == 0 ? kLeast : most[at] + std::log(total[at]);
  }
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_DISPATCH(attention_stub, &attention_kernel);

}  // namespace lamella::native
