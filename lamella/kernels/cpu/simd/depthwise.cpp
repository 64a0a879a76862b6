// Depthwise convolutions: Note [Padded planes].
#include "lamella/kernels/cpu/simd/depthwise.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "lamella/core/interrupt.h"
#include "lamella/kernels/cpu/simd/lanes.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {
using namespace lanes;

constexpr int kVectors = 4;  // vectors of a row that are computed together
constexpr int64_t kBlock = kVectors * kLanes;

// Loads and stores of the first n lanes; the others are loaded as 0. Without mask instructions,
// memory is copied in pieces of fixed sizes.
#if defined(CPU_CAPABILITY_AVX512)
constexpr bool kHasMasks = true;
inline __mmask16 mask_of(int64_t n) {
  return static_cast<__mmask16>(n >= kLanes ? 0xffff : n <= 0 ? 0 : (1u << n) - 1);
}
inline Lanes load_some(const float* from, int64_t n) {
  return _mm512_maskz_loadu_ps(mask_of(n), from);
}
inline void store_some(float* to, Lanes v, int64_t n) { _mm512_mask_storeu_ps(to, mask_of(n), v); }
inline void copy_few(const float* from, float* to, int64_t n) {
  store_some(to, load_some(from, n), n);
}
#else
constexpr bool kHasMasks = false;
// Requires n < kLanes.
inline void copy_few(const float* from, float* to, int64_t n) {
#pragma GCC unroll 4
  for (int64_t piece = kLanes / 2; piece > 0; piece /= 2) {
    if ((n & piece) == 0) continue;
    std::memcpy(to, from, static_cast<size_t>(piece) * sizeof(float));
    from += piece;
    to += piece;
  }
}
inline Lanes load_some(const float* from, int64_t n) {
  if (n >= kLanes) return load(from);
  float parts[kLanes] = {};
  if (n > 0) copy_few(from, parts, n);
  return load(parts);
}
inline void store_some(float* to, Lanes v, int64_t n) {
  if (n >= kLanes) return store(to, v);
  if (n <= 0) return;
  float parts[kLanes];
  store(parts, v);
  copy_few(parts, to, n);
}
#endif
inline void copy_row(const float* from, float* to, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(to + i, load(from + i));
  copy_few(from + i, to + i, n - i);
}

// A mask with all bits set in the first n lanes.
IntLanes first_lanes(int64_t n) {
  IntLanes lanes;
  for (int i = 0; i < kLanes; ++i) lanes[i] = i;
  return lanes < static_cast<int32_t>(std::clamp<int64_t>(n, 0, kLanes));
}
Lanes kept(IntLanes keep, Lanes v) {
  return reinterpret_cast<Lanes>(keep & reinterpret_cast<IntLanes>(v));
}

// Lanes First, First + 2, ... of two concatenated vectors.
template <int First, int... I>
inline Lanes every_second(Lanes x, Lanes y, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, y, (First + 2 * I)...);
}

int64_t product(const int64_t (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; }
int64_t whole_lanes(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// The padded input channels of one group, and the columns made of them if there are any: Note
// [Padded planes].
class Plane {
 public:
  // With `rows`, no columns are made if rows of outputs fill their vectors well.
  Plane(const Depthwise& p, bool rows)
      : p_(p), rows_out_(p.out[0] * p.out[1]), width_(p.out[2]), is_flat_(is_flat(p, rows)) {
    for (int d = 0; d < 3; ++d) padded_[d] = p.in[d] + 2 * p.padding[d];
    stride_ = p.stride[2];
    // Blocks that begin inside a row may end past it.
    phase_ = (padded_[2] + stride_ - 1) / stride_ + kBlock;
    row_ = phase_ * stride_;
    int64_t channel = padded_[0] * padded_[1] * row_;
    memory_.assign(static_cast<size_t>(p.inputs * channel), 0.0f);
    // rows_ has the offset of each input row, and columns_ the offset in a row of the first element
    // with each remainder.
    for (int64_t row = 0; row < p.inputs * p.in[0] * p.in[1]; ++row) {
      int64_t y = row % p.in[1], z = row / p.in[1] % p.in[0], c = row / p.in[1] / p.in[0];
      rows_.push_back(((c * padded_[0] + z + p.padding[0]) * padded_[1] + y + p.padding[1]) * row_);
    }
    for (int64_t x = p.padding[2]; x < p.padding[2] + stride_; ++x) {
      columns_.push_back(x % stride_ * phase_ + x / stride_);
    }
    int64_t count = p.kernel[0] * p.kernel[1] * p.kernel[2];
    for (int64_t t = 0; t < p.inputs * count; ++t) {
      int64_t z = t % count / (p.kernel[1] * p.kernel[2]), y = t / p.kernel[2] % p.kernel[1];
      int64_t column = t % p.kernel[2] * p.dilation[2];
      taps_.push_back(t / count * channel +
                      (z * p.dilation[0] * padded_[1] + y * p.dilation[1]) * row_ +
                      column % stride_ * phase_ + column / stride_);
    }
    if (!is_flat_) return;
    plane_taps_.swap(taps_);
    rows_out_ = 1;
    width_ = product(p.out);
    for (int64_t t = 0; t < p.inputs * count; ++t) taps_.push_back(t * whole_lanes(width_));
    // Blocks that begin inside the last column may end past it.
    columns_of_taps_.resize(static_cast<size_t>(p.inputs * count * whole_lanes(width_) + kBlock));
  }

  bool is_flat() const { return is_flat_; }
  const std::vector<int64_t>& taps() const { return taps_; }
  int64_t rows() const { return rows_out_; }  // of outputs
  int64_t width() const { return width_; }    // of such a row
  // The address that the first tap reads for the first output of row `row`.
  const float* at_output_row(int64_t row) const {
    return is_flat_ ? columns_of_taps_.data() : in_plane(row);
  }
  void bring(const float* src) {
    bring_plane(src);
    if (is_flat_) flatten();
  }

 private:
  // True if columns are made: they fit the cache, and many output channels read them.
  static bool is_flat(const Depthwise& p, bool rows) {
    constexpr int64_t kMinReaders = 4, kMaxColumns = 1 << 15;
    int64_t columns = p.inputs * product(p.kernel) * whole_lanes(product(p.out));
    bool fills = whole_lanes(p.out[2]) * 7 <= p.out[2] * 8;
    return p.multiplier >= kMinReaders && columns <= kMaxColumns && !(rows && fills);
  }
  const float* in_plane(int64_t row) const {
    int64_t z = p_.out[0] == 1 ? 0 : row / p_.out[1], y = row - z * p_.out[1];
    return memory_.data() + (z * p_.stride[0] * padded_[1] + y * p_.stride[1]) * row_;
  }
  void flatten() {
    int64_t column = whole_lanes(width_), row_width = p_.out[2];
    float* to = columns_of_taps_.data();
    for (int64_t tap : plane_taps_) {
      float* at = to;
      for (int64_t row = 0; row < p_.out[0] * p_.out[1]; ++row, at += row_width) {
        const float* from = in_plane(row) + tap;
        // Vectors may end past the row, which the next row then overwrites.
        for (int64_t x = 0; x < row_width; x += kLanes) store(at + x, load(from + x));
      }
      to += column;
    }
    to = columns_of_taps_.data();
    for (size_t t = 0; t < plane_taps_.size(); ++t, to += column) {
      std::fill(to + width_, to + column, 0.0f);
    }
  }
  void bring_plane(const float* src) {
    int64_t n = p_.in[2], padding = p_.padding[2];
    const float *from = src, *end = src + static_cast<int64_t>(rows_.size()) * n;
    // Reads a whole vector if `src` is long enough, and sets the excess lanes to 0.
    auto piece = [&](const float* x, int64_t count) {
      if constexpr (kHasMasks) return load_some(x, count);
      bool has_room = end - x >= kLanes;
      return has_room ? kept(first_lanes(count), load(x)) : load_some(x, count);
    };
    for (int64_t row = 0; row < p_.inputs * p_.in[0] * p_.in[1]; ++row, from += n) {
      float* to = memory_.data() + rows_[static_cast<size_t>(row)];
      auto place = [&](int64_t column) { return to + columns_[static_cast<size_t>(column)]; };
      if (stride_ == 1) {
        copy_row(from, to + padding, n);
      } else if (stride_ == 2) {
        float *even = place(0), *odd = place(1);
        for (int64_t x = 0; x < n; x += 2 * kLanes, even += kLanes, odd += kLanes) {
          Lanes first = piece(from + x, n - x);
          Lanes second = piece(from + x + kLanes, n - x - kLanes);
          constexpr auto kIndices = std::make_integer_sequence<int, kLanes>();
          store(even, every_second<0>(first, second, kIndices));
          store(odd, every_second<1>(first, second, kIndices));
        }
      } else {
        for (int64_t first = 0; first < std::min(stride_, n); ++first) {
          float* phase = place(first);
          for (int64_t x = first; x < n; x += stride_) *phase++ = from[x];
        }
      }
    }
  }

 private:
  const Depthwise& p_;
  int64_t rows_out_, width_;
  bool is_flat_;
  int64_t padded_[3], stride_, phase_, row_;
  std::vector<float> memory_, columns_of_taps_;
  std::vector<int64_t> taps_, plane_taps_, rows_, columns_;
};

// Calls f(number of vectors as a constant, row, first output, number of outputs) for the blocks of
// an output channel.
template <class F>
void each_block(const Plane& plane, F&& f) {
  for (int64_t row = 0; row < plane.rows(); ++row) {
    for (int64_t x = 0; x < plane.width(); x += kBlock) {
      int64_t n = std::min(kBlock, plane.width() - x);
      if (n > 2 * kLanes) {
        f(std::integral_constant<int, kVectors>(), row, x, n);
      } else if (n > kLanes) {
        f(std::integral_constant<int, 2>(), row, x, n);
      } else {
        f(std::integral_constant<int, 1>(), row, x, n);
      }
    }
  }
}
// Computes n outputs of C channels of dst, `channel` elements apart. There are S partial sums, each
// of every S-th tap.
template <int C, int V, int S>
inline void outputs_of(const float* at, const std::vector<int64_t>& taps, const float* weights,
                       const float* bias, float* to, int64_t channel, int64_t n) {
  Lanes parts[S][C][V] = {};
  auto count = static_cast<int64_t>(taps.size());
  for (int c = 0; c < C; ++c) {
    for (int v = 0; v < V; ++v) parts[0][c][v] = all(bias == nullptr ? 0.0f : bias[c]);
  }
  auto take = [&](int64_t t, Lanes(&sums)[C][V]) {
    const float* from = at + taps[static_cast<size_t>(t)];
    Lanes read[V];
    for (int v = 0; v < V; ++v) read[v] = load(from + v * kLanes);
    for (int c = 0; c < C; ++c) {
      const Lanes by = all(weights[c * count + t]);
      for (int v = 0; v < V; ++v) sums[c][v] = multiply_add(by, read[v], sums[c][v]);
    }
  };
  int64_t t = 0;
  for (; S > 1 && t + S <= count; t += S) {
#pragma GCC unroll 8
    for (int s = 0; s < S; ++s) take(t + s, parts[s]);
  }
  for (; t < count; ++t) take(t, parts[0]);
  Lanes(&sums)[C][V] = parts[0];
  for (int s = 1; s < S; ++s) {
    for (int c = 0; c < C; ++c) {
      for (int v = 0; v < V; ++v) sums[c][v] += parts[s][c][v];
    }
  }
  // Unrolled, so that the sums stay in registers.
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      store_some(to + c * channel + v * kLanes, sums[c][v], n - v * kLanes);
    }
  }
}

void forward_kernel(const Depthwise& p, int64_t begin, int64_t end) {
  Plane plane(p, true);
  const std::vector<int64_t>& taps = plane.taps();
  int64_t inputs = p.inputs * product(p.in), outputs = product(p.out);
  auto count = static_cast<int64_t>(taps.size());
  for (int64_t i = begin; i < end; ++i) {
    count_steps(p.multiplier * outputs * count / 8);
    plane.bring(p.src + i * inputs);
    int64_t first = i % p.groups * p.multiplier;
    const float* weights = p.weights + first * count;
    float* dst = p.dst + i * p.multiplier * outputs;
    each_block(plane, [&](auto vectors, int64_t row, int64_t x, int64_t n) {
      constexpr int V = decltype(vectors)::value;
      const float* at = plane.at_output_row(row) + x;
      float* to = dst + row * plane.width() + x;
      // Enough sums to hide their latency; with many taps also for a single channel.
      constexpr int C = 2 * kVectors / V, S = kVectors / V;
      constexpr int64_t kManyTaps = 64;
      for (int64_t m = 0; m < p.multiplier;) {
        const float* bias = p.bias == nullptr ? nullptr : p.bias + first + m;
        if (m + C <= p.multiplier) {
          outputs_of<C, V, 1>(at, taps, weights + m * count, bias, to + m * outputs, outputs, n);
          m += C;
        } else if (count < kManyTaps) {
          outputs_of<1, V, 1>(at, taps, weights + m * count, bias, to + m * outputs, outputs, n);
          ++m;
        } else {
          outputs_of<1, V, S>(at, taps, weights + m * count, bias, to + m * outputs, outputs, n);
          ++m;
        }
      }
    });
  }
}

// Adds the products of M channels of the gradient, `channel` apart, with T columns to the M * T
// vectors of `sums`.
template <int M, int T>
void flat_products(const float* grad, int64_t channel, const float* columns, int64_t column,
                   int64_t n, float* sums, int64_t sums_row) {
  Lanes products[M][T] = {};
  // Unrolled, so that the products stay in registers.
  for (int64_t x = 0; x < n; x += kLanes) {
    Lanes by[T];
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) by[t] = load(columns + t * column + x);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      const Lanes g = load_some(grad + m * channel + x, n - x);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) products[m][t] = multiply_add(g, by[t], products[m][t]);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      float* to = sums + m * sums_row + t * kLanes;
      store(to, load(to) + products[m][t]);
    }
  }
}
template <int M>
void flat_channels(const Plane& plane, const float* grad, float* sums) {
  auto count = static_cast<int64_t>(plane.taps().size());
  int64_t n = plane.width(), column = whole_lanes(n);
  const float* columns = plane.at_output_row(0);
  int64_t t = 0;
  for (; t + 3 <= count; t += 3) {
    flat_products<M, 3>(grad, n, columns + t * column, column, n, sums + t * kLanes,
                        count * kLanes);
  }
  for (; t < count; ++t) {
    flat_products<M, 1>(grad, n, columns + t * column, column, n, sums + t * kLanes,
                        count * kLanes);
  }
}
// Adds the products of one channel of the gradient with the taps, if the plane has no columns.
void channel_by_rows(const Plane& plane, const float* grad, float* sums) {
  const std::vector<int64_t>& taps = plane.taps();
  auto count = static_cast<int64_t>(taps.size());
  each_block(plane, [&](auto vectors, int64_t row, int64_t x, int64_t n) {
    constexpr int V = decltype(vectors)::value;
    const float* at = plane.at_output_row(row) + x;
    const float* from = grad + row * plane.width() + x;
    Lanes grads[V];
    IntLanes keep[V];  // masks infinite elements that lie outside the row
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      grads[v] = load_some(from + v * kLanes, n - v * kLanes);
      keep[v] = first_lanes(n - v * kLanes);
    }
    for (int64_t t = 0; t < count; ++t) {
      const float* by = at + taps[static_cast<size_t>(t)];
      Lanes sum = load(sums + t * kLanes);
      for (int v = 0; v < V; ++v) {
        sum = multiply_add(grads[v], kept(keep[v], load(by + v * kLanes)), sum);
      }
      store(sums + t * kLanes, sum);
    }
  });
}

void backward_weights_kernel(const Depthwise& p, int64_t begin, int64_t end) {
  Plane plane(p, false);
  int64_t inputs = p.inputs * product(p.in), outputs = product(p.out);
  auto count = static_cast<int64_t>(plane.taps().size());
  std::vector<float> sums(static_cast<size_t>(p.multiplier * count * kLanes));
  for (int64_t group = begin; group < end; ++group) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (int64_t sample = 0; sample < p.batch; ++sample) {
      count_steps(p.multiplier * outputs * count / 8);
      int64_t i = sample * p.groups + group;
      plane.bring(p.src + i * inputs);
      const float* dst = p.dst + i * p.multiplier * outputs;
      for (int64_t m = 0; m < p.multiplier;) {
        const float* grad = dst + m * outputs;
        float* to = sums.data() + m * count * kLanes;
        if (!plane.is_flat()) {
          channel_by_rows(plane, grad, to);
          ++m;
        } else if (m + 4 <= p.multiplier) {
          flat_channels<4>(plane, grad, to);
          m += 4;
        } else {
          flat_channels<1>(plane, grad, to);
          ++m;
        }
      }
    }
    float* weights = p.weights + group * p.multiplier * count;
    for (int64_t t = 0; t < p.multiplier * count; ++t) {
      float sum = 0;
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        sum += sums[static_cast<size_t>(t * kLanes + lane)];
      }
      weights[t] = sum;
    }
  }
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(depthwise_forward_on, &forward_kernel);
LAMELLA_REGISTER_KERNEL(depthwise_backward_weights_on, &backward_weights_kernel);

}  // namespace lamella::native
