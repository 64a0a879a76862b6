// Transforms of Winograd's convolution: Note [Winograd].
#include "lamella/kernels/cpu/simd/winograd.h"

#include "lamella/kernels/cpu/simd/lanes.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {
using namespace lanes;

constexpr int kSide = 4;  // a tile reads kSide x kSide elements

struct Tile {
  int64_t sample, y, x;  // of its first result
};
Tile tile_at(const WinogradPlanes& p, int64_t number) {
  int64_t in_sample = number % (p.down * p.across);
  return {number / (p.down * p.across), in_sample / p.across * 2, in_sample % p.across * 2};
}

// Transforms four numbers along one dimension.
inline void turn_elements(Lanes a, Lanes b, Lanes c, Lanes d, Lanes* to, int step) {
  to[0] = a - c;
  to[step] = b + c;
  to[2 * step] = c - b;
  to[3 * step] = b - d;
}
void elements_kernel(const WinogradPlanes& p, int64_t first, int64_t count, float* values) {
  const int64_t point = count * p.from_channels;
  for (int64_t t = 0; t < count; ++t) {
    const Tile tile = tile_at(p, first + t);
    const float* pixels[kSide][kSide];  // null for pixels in the padding
    for (int i = 0; i < kSide; ++i) {
      for (int j = 0; j < kSide; ++j) {
        int64_t y = tile.y - p.above + i, x = tile.x - p.left + j;
        bool inside = y >= 0 && y < p.from_height && x >= 0 && x < p.from_width;
        pixels[i][j] =
            inside ? p.from + tile.sample * p.from_sample + y * p.from_row + x * p.from_column
                   : nullptr;
      }
    }
    float* to = values + t * p.from_channels;
    for (int64_t c = 0; c < p.from_channels; c += kLanes) {
      Lanes rows[kSide][kSide], turned[kSide];
      for (int j = 0; j < kSide; ++j) {
        Lanes d[kSide];
        for (int i = 0; i < kSide; ++i) {
          d[i] = pixels[i][j] != nullptr ? load(pixels[i][j] + c) : Lanes{};
        }
        turn_elements(d[0], d[1], d[2], d[3], &rows[0][j], kSide);
      }
      for (int i = 0; i < kSide; ++i) {
        turn_elements(rows[i][0], rows[i][1], rows[i][2], rows[i][3], turned, 1);
        for (int j = 0; j < kSide; ++j) store(to + (kSide * i + j) * point + c, turned[j]);
      }
    }
  }
}

inline void turn_weights(Lanes a, Lanes b, Lanes c, Lanes* to, int step) {
  const Lanes half = all(0.5f);
  to[0] = a;
  to[step] = (a + c + b) * half;
  to[2 * step] = (a + c - b) * half;
  to[3 * step] = c;
}
void weights_kernel(const WinogradWeights& w, int64_t begin, int64_t end, float* values,
                    int64_t values_row) {
  const int64_t point = w.from_channels * values_row;
  for (int64_t from = begin; from < end; ++from) {
    for (int64_t to = 0; to < w.to_channels; to += kLanes) {
      float taps[9][kLanes];
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        const float* kernel = w.weights + from * w.from + (to + lane) * w.to;
        for (int64_t i = 0; i < 3; ++i) {
          for (int64_t j = 0; j < 3; ++j) taps[3 * i + j][lane] = kernel[i * w.row + j * w.column];
        }
      }
      Lanes rows[kSide][3], turned[kSide];
      for (int j = 0; j < 3; ++j) {
        turn_weights(load(taps[j]), load(taps[3 + j]), load(taps[6 + j]), &rows[0][j], 3);
      }
      for (int i = 0; i < kSide; ++i) {
        turn_weights(rows[i][0], rows[i][1], rows[i][2], turned, 1);
        for (int j = 0; j < kSide; ++j) {
          store(values + (kSide * i + j) * point + from * values_row + to, turned[j]);
        }
      }
    }
  }
}

bool results_kernel(const WinogradPlanes& p, int64_t first, int64_t count, const float* values) {
  const int64_t point = count * p.to_channels;
  Lanes apart = {};  // 0 as long as all results are finite
  for (int64_t t = 0; t < count; ++t) {
    const Tile tile = tile_at(p, first + t);
    float* to = p.to + tile.sample * p.to_sample + tile.y * p.to_row + tile.x * p.to_column;
    const bool has_below = tile.y + 1 < p.to_height, has_right = tile.x + 1 < p.to_width;
    const float* from = values + t * p.to_channels;
    for (int64_t c = 0; c < p.to_channels; c += kLanes) {
      Lanes upper[kSide], lower[kSide];
      for (int j = 0; j < kSide; ++j) {
        Lanes m[kSide];
        for (int i = 0; i < kSide; ++i) m[i] = load(from + (kSide * i + j) * point + c);
        upper[j] = m[0] + m[1] + m[2];
        lower[j] = m[1] - m[2] - m[3];
      }
      const Lanes bias = p.bias != nullptr ? load(p.bias + c) : Lanes{};
      auto put = [&](const Lanes* row, int64_t y, bool is_there) {
        Lanes left = row[0] + row[1] + row[2] + bias, right = row[1] - row[2] - row[3] + bias;
        apart += left * 0.0f + right * 0.0f;
        if (!is_there) return;
        float* at = to + y * p.to_row + c;
        store(at, left);
        if (has_right) store(at + p.to_column, right);
      };
      put(upper, 0, true);
      put(lower, 1, has_below);
    }
  }
  float sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += apart[lane];
  return sum == 0;
}

const WinogradKernels* kernels() {
  static constexpr WinogradKernels all = {&elements_kernel, &weights_kernel, &results_kernel};
  return &all;
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(winograd_kernels_on, &kernels);

}  // namespace lamella::native
