// Samples of images in two dimensions. Rounds as the operators do that the gradients are made of.
#include <algorithm>
#include <cmath>

#include "lamella/kernels/families/images/samples.h"

namespace lamella::images {
inline namespace CPU_CAPABILITY {
namespace {

constexpr int kBlock = 64;  // points that are sampled together
constexpr int kMaxTaps = 4;

template <class T>
struct Taps {
  int count;
  int32_t index[kMaxTaps][kBlock];
  T weight[kMaxTaps][kBlock];
};

// fmod(from, span), or span less that if from / span is odd when rounded down.
template <class T>
T folded(T from, T span) {
  if (from < span) return from;
  if (from < 2 * span) return span - (from - span);
  const T rest = std::fmod(from, span);
  return std::fmod(std::floor(from / span), T(2)) != 0 ? span - rest : rest;
}
template <class T>
void pad(T* place, int64_t size, Padding padding, bool align_corners) {
  if (padding == kZeros) return;
  if (padding == kReflection) {
    const T least = align_corners ? T(0) : T(-0.5);
    const T span = align_corners ? static_cast<T>(size - 1) : static_cast<T>(size);
    for (int j = 0; j < kBlock; ++j) {
      place[j] = span == 0 ? T(0) : folded(std::abs(place[j] - least), span) + least;
    }
  }
  const T last = static_cast<T>(size - 1);
  for (int j = 0; j < kBlock; ++j) {
    const T x = place[j] > 0 ? place[j] : T(0);  // NaN is placed at 0
    place[j] = x > last ? last : x;
  }
}
// A position outside of the image has the index -1, whose pixel is 0, and the weight 0.
template <class T>
void set_tap(const T* place, const T* weight, int64_t size, int k, Taps<T>* taps) {
  const T last = static_cast<T>(size - 1);
  for (int j = 0; j < kBlock; ++j) {
    const bool inside = (place[j] >= 0) & (place[j] <= last);
    taps->index[k][j] = static_cast<int32_t>(inside ? place[j] : T(-1));
    taps->weight[k][j] = weight[j] * (inside ? T(1) : T(0));
  }
}
// Weights at distances up to 1, and up to 2: Keys' convolution, as in images/sampling.cpp.
template <class T>
T inner(T x) {
  return (x * T(1.25) - T(2.25)) * x * x + 1;
}
template <class T>
T outer(T x) {
  return ((x * T(-0.75) - T(-3.75)) * x + T(-6)) * x - T(-3);
}

// Replaces the coordinates `x`.
template <class T>
void find_taps(const Samples<T>& s, int64_t size, T* x, Taps<T>* taps) {
  if (s.align_corners) {
    for (int j = 0; j < kBlock; ++j) x[j] = (x[j] + 1) * (static_cast<T>(size - 1) / 2);
  } else {
    for (int j = 0; j < kBlock; ++j) x[j] = ((x[j] + 1) * static_cast<T>(size) - 1) / 2;
  }
  T first[kBlock], weights[kMaxTaps][kBlock];
  if (s.mode == kBicubic) {
    taps->count = 4;
    for (int j = 0; j < kBlock; ++j) {
      first[j] = std::floor(x[j]);
      const T t = x[j] - first[j], rest = 1 - t;
      weights[0][j] = outer(t + 1), weights[1][j] = inner(t);
      weights[2][j] = inner(rest), weights[3][j] = outer(rest + 1);
    }
    for (int k = 0; k < 4; ++k) {
      for (int j = 0; j < kBlock; ++j) x[j] = first[j] + static_cast<T>(k - 1);
      pad(x, size, s.padding, s.align_corners);
      set_tap(x, weights[k], size, k, taps);
    }
    return;
  }
  pad(x, size, s.padding, s.align_corners);
  if (s.mode == kNearest) {
    taps->count = 1;
    for (int j = 0; j < kBlock; ++j) x[j] = std::nearbyint(x[j]), weights[0][j] = 1;
    return set_tap(x, weights[0], size, 0, taps);
  }
  taps->count = 2;
  for (int j = 0; j < kBlock; ++j) {
    first[j] = std::floor(x[j]);
    weights[1][j] = x[j] - first[j];
    weights[0][j] = 1 - weights[1][j];
  }
  set_tap(first, weights[0], size, 0, taps);
  for (int j = 0; j < kBlock; ++j) x[j] = first[j] + 1;
  set_tap(x, weights[1], size, 1, taps);
}

// The pixels that each point is made of, one tap after the other.
template <class T>
struct Weighted {
  int count = 0;
  int32_t index[kMaxTaps * kMaxTaps][kBlock];
  T weight[kMaxTaps * kMaxTaps][kBlock];
};

// A point of each channel after the other, so that its taps stay in registers: a gather of vectors
// takes longer than the loads that it is made of.
template <int kTaps, class T>
void sum_taps(const Samples<T>& s, const Weighted<T>& w, int64_t begin, int64_t n) {
  const int64_t pixels = s.size[0] * s.size[1];
  for (int64_t j = 0; j < n; ++j) {
    int64_t index[kTaps];
    T weight[kTaps];
    bool inside = true;
    for (int k = 0; k < kTaps; ++k) {
      index[k] = w.index[k][j], weight[k] = w.weight[k][j];
      inside &= index[k] >= 0;
    }
    auto sum_all = [&](auto pixel) {
      const T* plane = s.image;
      T* out = s.out + begin + j;
      for (int64_t c = 0; c < s.channels; ++c, plane += pixels, out += s.points) {
        T sum = pixel(plane, index[0]) * weight[0];
        for (int k = 1; k < kTaps; ++k) sum += pixel(plane, index[k]) * weight[k];
        *out = sum;
      }
    };
    if (inside) {
      sum_all([](const T* plane, int64_t at) { return plane[at]; });
    } else {
      sum_all([](const T* plane, int64_t at) { return at < 0 ? T(0) : plane[at]; });
    }
  }
}

template <class T>
void sample_block(const Samples<T>& s, int64_t begin, int64_t n) {
  Taps<T> taps[2];
  Weighted<T> w;
  for (int d = 0; d < 2; ++d) {
    T x[kBlock] = {};
    for (int64_t j = 0; j < n; ++j) x[j] = s.grid[2 * (begin + j) + 1 - d];
    find_taps(s, s.size[d], x, &taps[d]);
  }
  const auto wide = static_cast<int32_t>(s.size[1]);
  for (int a = 0; a < taps[0].count; ++a) {
    for (int b = 0; b < taps[1].count; ++b, ++w.count) {
      for (int j = 0; j < kBlock; ++j) {
        const int32_t row = taps[0].index[a][j], column = taps[1].index[b][j];
        w.index[w.count][j] = (row | column) < 0 ? -1 : row * wide + column;
        w.weight[w.count][j] = taps[0].weight[a][j] * taps[1].weight[b][j];
      }
    }
  }
  if (w.count == 1) return sum_taps<1>(s, w, begin, n);
  if (w.count == 4) return sum_taps<4>(s, w, begin, n);
  sum_taps<kMaxTaps * kMaxTaps>(s, w, begin, n);
}

}  // namespace

template <class T>
void sample_points(const Samples<T>& s, int64_t begin, int64_t end) {
  for (; begin < end; begin += kBlock) {
    sample_block(s, begin, std::min<int64_t>(kBlock, end - begin));
  }
}
template void sample_points(const Samples<float>&, int64_t, int64_t);
template void sample_points(const Samples<double>&, int64_t, int64_t);

}  // namespace CPU_CAPABILITY
}  // namespace lamella::images
