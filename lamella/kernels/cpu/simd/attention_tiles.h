// Building blocks of the attention kernels: vectors, products of tiles in registers, and copies of
// rows into tiles. Compiled for the CPU capability of the file that includes it.
#pragma once
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/convert.h"
#include "lamella/kernels/cpu/simd/attention.h"
#include "lamella/kernels/cpu/simd/lanes.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace tiles {
using namespace lanes;

// ---- Vectors ----

typedef float Four __attribute__((vector_size(16)));
typedef Four FourInMemory __attribute__((aligned(4), may_alias));

constexpr float kLeast = -std::numeric_limits<float>::infinity();
constexpr double kLog2E = 1.4426950408889634074;
constexpr float kLn2 = 0.693147180559945309f;

// The lanes of a where the condition holds, else those of b; infinities and NaN in lanes that are
// not selected have no effect.
inline Lanes select(IntLanes condition, Lanes a, Lanes b) { return condition ? a : b; }
inline Lanes larger(Lanes a, Lanes b) { return a > b ? a : b; }
// 0, 1, 2, ...
inline IntLanes count_up() {
  IntLanes lanes;
  for (int i = 0; i < kLanes; ++i) lanes[i] = i;
  return lanes;
}

// 2^x within 1.5 units in the last place for x <= 0; denormal results become 0. Uses a minimax
// polynomial (of relative error) for the fraction in [-0.5, 0.5].
inline Lanes exp2_of(Lanes x) {
#if defined(CPU_CAPABILITY_AVX512)
  // The same numbers in fewer instructions.
  Lanes t = _mm512_maskz_reduce_ps(0xffff, x, 0);
#else
  const Lanes shifter = all(12582912.0f);  // 1.5 * 2^23: adding it rounds to whole numbers
  Lanes clamped = x < all(-127.0f) ? all(-127.0f) : x;
  Lanes shifted = clamped + shifter;
  Lanes t = clamped - (shifted - shifter);
#endif
  Lanes p = all(0.00015353361959569156f);
  p = multiply_add(p, t, all(0.0013398875016719103f));
  p = multiply_add(p, t, all(0.00961843691766262f));
  p = multiply_add(p, t, all(0.055503323674201965f));
  p = multiply_add(p, t, all(0.24022647738456726f));
  p = multiply_add(p, t, all(0.6931471824645996f));
  p = multiply_add(p, t, all(1.0f));
#if defined(CPU_CAPABILITY_AVX512)
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, all(-126.0f), _CMP_NLT_UQ), p, x - t);
#else
  auto exponent = reinterpret_cast<IntLanes>(shifted) << 23;
  Lanes power = reinterpret_cast<Lanes>(exponent + (127 << 23));
  return x < all(-126.0f) ? Lanes{} : p * power;
#endif
}

// ---- Products ----

// c[R x V vectors] = a b, plus c times `factors` (one for each row) if there are any. Element (r,
// i) of a is at r * a_row + i * a_column.
template <int R, int V>
inline void tile(const float* a, int64_t a_row, int64_t a_column, const float* b, int64_t b_row,
                 float* c, int64_t c_row, int64_t k, const float* factors) {
  Lanes sum[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      sum[r][v] = factors == nullptr ? Lanes{} : load(c + r * c_row + v * kLanes) * all(factors[r]);
    }
  }
  for (int64_t i = 0; i < k; ++i) {
    Lanes right[V];
    for (int v = 0; v < V; ++v) right[v] = load(b + v * kLanes);
    for (int r = 0; r < R; ++r) {
      Lanes left = all(a[r * a_row]);
      for (int v = 0; v < V; ++v) sum[r][v] = multiply_add(left, right[v], sum[r][v]);
    }
    a += a_column;
    b += b_row;
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) store(c + r * c_row + v * kLanes, sum[r][v]);
  }
}

// Rows of a tile: as many as registers hold with two vectors each.
#if defined(CPU_CAPABILITY_AVX512)
constexpr int kTileRows = 8;
#else
constexpr int kTileRows = 4;
#endif

// c[rows x columns] = a b + c * factors, as above. Columns are whole vectors.
inline void multiply(const float* a, int64_t a_row, int64_t a_column, const float* b, int64_t b_row,
                     float* c, int64_t c_row, int64_t rows, int64_t columns, int64_t k,
                     const float* factors) {
  for (int64_t j = 0; j < columns; j += 2 * kLanes) {
    bool two = j + 2 * kLanes <= columns;
    for (int64_t i = 0; i < rows;) {
      const float* from = a + i * a_row;
      float* to = c + i * c_row + j;
      const float* by = factors == nullptr ? nullptr : factors + i;
      bool many = i + kTileRows <= rows;
      if (many && two) {
        tile<kTileRows, 2>(from, a_row, a_column, b + j, b_row, to, c_row, k, by);
      } else if (many) {
        tile<kTileRows, 1>(from, a_row, a_column, b + j, b_row, to, c_row, k, by);
      } else if (two) {
        tile<1, 2>(from, a_row, a_column, b + j, b_row, to, c_row, k, by);
      } else {
        tile<1, 1>(from, a_row, a_column, b + j, b_row, to, c_row, k, by);
      }
      i += many ? kTileRows : 1;
    }
  }
}

// ---- Rows ----

inline int64_t whole_vectors(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// to[j * to_row + i] = from[i * from_row + j] * scale.
inline void transpose(const float* from, int64_t from_row, int64_t rows, int64_t columns, float* to,
                      int64_t to_row, float scale) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    const float* x = from + i * from_row;
    int64_t j = 0;
    for (; j + 4 <= columns; j += 4) {
      auto at = [&](int64_t r) {
        return *reinterpret_cast<const FourInMemory*>(x + r * from_row + j) * scale;
      };
      Four a = at(0), b = at(1), c = at(2), d = at(3);
      Four low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      Four high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      Four low2 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      Four high2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      auto put = [&](int64_t r, Four v) {
        *reinterpret_cast<FourInMemory*>(to + (j + r) * to_row + i) = v;
      };
      put(0, __builtin_shufflevector(low, low2, 0, 1, 4, 5));
      put(1, __builtin_shufflevector(low, low2, 2, 3, 6, 7));
      put(2, __builtin_shufflevector(high, high2, 0, 1, 4, 5));
      put(3, __builtin_shufflevector(high, high2, 2, 3, 6, 7));
    }
    for (; j < columns; ++j) {
      for (int64_t r = 0; r < 4; ++r) to[j * to_row + i + r] = x[r * from_row + j] * scale;
    }
  }
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[j * to_row + i] = from[i * from_row + j] * scale;
  }
}

// Rows of floats that were read in place or copied into memory whose rows are padded with zeros to
// whole vectors.
struct Rows {
  const float* data;
  int64_t row;
};
class RowReader {
 public:
  RowReader(ScalarType dtype, int64_t width)
      : widen_(dtype == kFloat ? nullptr : get_convert(dtype, kFloat)), width_(width) {}
  // With `padded`, vectors over the ends of rows may be read.
  Rows read(const AttentionRows& from, int64_t first, int64_t count, float* room,
            bool padded) const {
    const char* x = from.data + first * from.row;
    int64_t wide = whole_vectors(width_);
    if (widen_ == nullptr && (!padded || wide == width_)) {
      return {reinterpret_cast<const float*>(x), from.row / static_cast<int64_t>(sizeof(float))};
    }
    for (int64_t i = 0; i < count; ++i) {
      float* to = room + i * wide;
      if (widen_ != nullptr) {
        widen_(x + i * from.row, to, width_);
      } else {
        std::memcpy(to, x + i * from.row, static_cast<size_t>(width_) * sizeof(float));
      }
      for (int64_t d = width_; d < wide; ++d) to[d] = 0;
    }
    return {room, wide};
  }

 private:
  ConvertFn widen_;
  int64_t width_;
};

// Scratch memory of a call, divided into parts that are aligned to cache lines.
class Scratch {
 public:
  explicit Scratch(int64_t floats)
      : memory_(new float[static_cast<size_t>(floats + 8 * kLine)]), next_(memory_.get()) {
    auto place = reinterpret_cast<uintptr_t>(next_);
    next_ += (64 - place % 64) % 64 / sizeof(float);
  }
  float* take(int64_t floats) {
    float* taken = next_;
    next_ += (floats + kLine - 1) / kLine * kLine;
    return taken;
  }

 private:
  static constexpr int64_t kLine = 16;
  std::unique_ptr<float[]> memory_;
  float* next_;
};

// ---- Scores ----

constexpr int64_t kKeys = 64;  // of a tile

// The scores, as exponents of 2, of `rows` queries from `first` on, for keys [key, key + count).
// The score of key j and query i is at to[j * columns + i]. For vector x of queries only the first
// seen(x) keys are computed.
class Scores {
 public:
  Scores(const AttentionHead& h, int64_t first, int64_t columns, const float* queries,
         float* mask_room)
      : h_(h), first_(first), columns_(columns), queries_(queries), mask_(mask_room) {}

  // The number of keys of a tile that some query of the vector starting at query x sees, rounded up
  // to whole tiles.
  int64_t seen(int64_t x, int64_t width, int64_t key, int64_t count) const {
    if (!h_.causal) return count;
    int64_t end = first_ + x + width - key;
    end = (end + kTileRows - 1) / kTileRows * kTileRows;
    return end < 0 ? 0 : end < count ? end : count;
  }

  // Multiplies the tile's rows of `width` elements by the queries' columns that see them.
  void products(const Rows& rows, int64_t width, const float* columns, int64_t key, int64_t count,
                float* to) const {
    for (int64_t x = 0; x < columns_; x += 2 * kLanes) {
      int64_t wide = x + 2 * kLanes <= columns_ ? 2 * kLanes : kLanes;
      multiply(rows.data, rows.row, 1, columns + x, columns_, to + x, columns_,
               seen(x, wide, key, count), wide, width, nullptr);
    }
  }

  void compute(const Rows& keys, int64_t key, int64_t count, int64_t rows, float* to) const {
    products(keys, h_.width, queries_, key, count, to);
    if (h_.mask != nullptr) add_mask(key, count, rows, to);
    if (!h_.causal) return;
    for (int64_t x = 0; x < columns_; x += kLanes) {
      int64_t from = first_ + x - key < 0 ? 0 : first_ + x - key;
      for (int64_t j = from; j < seen(x, kLanes, key, count); ++j) {
        float* at = to + j * columns_ + x;
        auto limit = static_cast<int32_t>(key + j - first_ - x);
        store(at, select(count_up() < limit, all(kLeast), load(at)));
      }
    }
  }

 private:
  void add_mask(int64_t key, int64_t count, int64_t rows, float* to) const {
    const float* mask = h_.mask + first_ * h_.mask_row + key * h_.mask_column;
    const Lanes base = all(static_cast<float>(kLog2E));
    if (h_.mask_row == 0) {
      for (int64_t j = 0; j < count; ++j) {
        Lanes added = all(mask[j * h_.mask_column] * static_cast<float>(kLog2E));
        for (int64_t x = 0; x < columns_; x += kLanes) {
          float* at = to + j * columns_ + x;
          store(at, load(at) + added);
        }
      }
      return;
    }
    if (h_.mask_column == 1) {
      transpose(mask, h_.mask_row, rows, count, mask_, columns_, 1);
    } else {
      for (int64_t j = 0; j < count; ++j) {
        for (int64_t i = 0; i < rows; ++i) {
          mask_[j * columns_ + i] = mask[i * h_.mask_row + j * h_.mask_column];
        }
      }
    }
    for (int64_t at = 0; at < count * columns_; at += kLanes) {
      store(to + at, multiply_add(load(mask_ + at), base, load(to + at)));
    }
  }

  const AttentionHead& h_;
  int64_t first_, columns_;
  const float* queries_;
  float* mask_;
};

// Writes the dropout factors of a tile in the layout of its scores.
inline void factors_as_columns(const AttentionHead& h, int64_t first, int64_t rows, int64_t key,
                               int64_t count, float* to, int64_t columns) {
  transpose(h.factors + first * h.factors_row + key, h.factors_row, rows, count, to, columns, 1);
}

// Writes the queries as columns, scaled so that scores are exponents of 2; columns past the last
// query are 0.
inline void queries_as_columns(const Rows& rows, int64_t count, int64_t width, float scale,
                               float* to, int64_t columns) {
  transpose(rows.data, rows.row, count, width, to, columns, scale);
  for (int64_t d = 0; d < width && count < columns; ++d) {
    for (int64_t i = count; i < columns; ++i) to[d * columns + i] = 0;
  }
}

}  // namespace tiles
}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
