// Interpolation and the gradients of interpolation and padding: Note [Lines of a resampling].
#include "lamella/kernels/cpu/simd/resample.h"

#include <algorithm>
#include <vector>

#include "lamella/core/interrupt.h"
#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

// The table of dimension 2 in the types of the loops. Indices fit 32 bits unless a line has more
// than 2^31 elements.
template <class T, class Place>
struct Line {
  std::vector<Place> first, second;
  std::vector<T> share;  // empty if each output reads a single element

  explicit Line(const ResampleTable& axis) : first(axis.first, axis.first + axis.out) {
    if (axis.second == nullptr) return;
    second.assign(axis.second, axis.second + axis.out);
    for (int64_t o = 0; o < axis.out; ++o) share.push_back(static_cast<T>(axis.share[o]));
  }

  // Computes y[o] from a line x for all o.
  void read(const T* x, T* y, int64_t lanes) const {
    auto n = static_cast<int64_t>(first.size());
    const Place *a = first.data(), *b = second.data();
    const T* parts = share.data();
    if (lanes == 1 && share.empty()) {
#pragma GCC ivdep
      for (int64_t o = 0; o < n; ++o) y[o] = x[a[o]];
    } else if (lanes == 1) {
#pragma GCC ivdep
      for (int64_t o = 0; o < n; ++o) {
        T part = parts[o], one = x[a[o]], other = x[b[o]];
        // An infinite element with weight 0 must not produce NaN.
        y[o] = part == T(0) ? one : (T(1) - part) * one + part * other;
      }
    } else {
      for (int64_t o = 0; o < n; ++o, y += lanes) {
        const T *one = x + static_cast<int64_t>(a[o]) * lanes,
                *other = share.empty() ? one : x + static_cast<int64_t>(b[o]) * lanes;
        T part = share.empty() ? T(0) : parts[o], rest = T(1) - part;
        if (part == T(0)) {
          std::copy(one, one + lanes, y);
          continue;
        }
#pragma GCC ivdep
        for (int64_t c = 0; c < lanes; ++c) y[c] = rest * one[c] + part * other[c];
      }
    }
  }

  // Adds the contributions of y to a line x.
  void spread(const T* y, T* x, int64_t lanes) const {
    auto n = static_cast<int64_t>(first.size());
    if (share.empty()) {
      for (int64_t o = 0; o < n;) {
        // Consecutive outputs read consecutive inputs.
        auto at = static_cast<size_t>(o);
        int64_t end = o + 1;
        while (end < n && first[static_cast<size_t>(end)] == first[at] + (end - o)) ++end;
        T* to = x + first[at] * lanes;
        const T* from = y + o * lanes;
#pragma GCC ivdep
        for (int64_t c = 0; c < (end - o) * lanes; ++c) to[c] += from[c];
        o = end;
      }
      return;
    }
    for (int64_t o = 0; o < n; ++o, y += lanes) {
      auto at = static_cast<size_t>(o);
      T *one = x + first[at] * lanes, *other = x + second[at] * lanes;
      T part = share[at], rest = T(1) - part;
#pragma GCC ivdep
      for (int64_t c = 0; c < lanes; ++c) one[c] += rest * y[c];
      if (part == T(0)) continue;
#pragma GCC ivdep
      for (int64_t c = 0; c < lanes; ++c) other[c] += part * y[c];
    }
  }
};

bool is_mixed(const ResampleTable& axis, int64_t o) {
  return axis.second != nullptr && axis.share[o] != 0;
}

// Calls f(input line, weight) for the lines of a plane that output line (i, j) reads.
template <class T, class F>
void each_source(const ResampleLines& p, int64_t i, int64_t j, F&& f) {
  auto taps = [](const ResampleTable& axis, int64_t o, int64_t(&place)[2], T(&weight)[2]) {
    place[0] = axis.first[o];
    weight[0] = T(1);
    if (!is_mixed(axis, o)) return 1;
    place[1] = axis.second[o];
    weight[1] = static_cast<T>(axis.share[o]);
    weight[0] = T(1) - weight[1];
    return 2;
  };
  int64_t a[2], b[2];
  T wa[2], wb[2];
  int na = taps(p.axes[0], i, a, wa), nb = taps(p.axes[1], j, b, wb);
  for (int x = 0; x < na; ++x) {
    for (int y = 0; y < nb; ++y) f(a[x], b[y], wa[x] * wb[y]);
  }
}

// A cache of four resampled lines; adjacent lines use different slots.
template <class T>
struct Kept {
  int64_t size, tags[4] = {-1, -1, -1, -1};
  std::vector<T> memory;

  explicit Kept(int64_t elements) : size(elements), memory(static_cast<size_t>(4 * elements)) {}
  static int slot(int64_t a, int64_t b) { return static_cast<int>((a & 1) * 2 + (b & 1)); }
  T* at(int slot) { return memory.data() + slot * size; }
};

constexpr int64_t kManyLanes = 16;
// With many lanes, vectors run along the lanes, and each output is computed directly from its
// inputs.
template <class T, class Place>
void mix_lanes(const Line<T, Place>& along, const T* x0, const T* x1, T w0, T w1, int64_t lanes,
               T* y) {
  for (size_t o = 0; o < along.first.size(); ++o, y += lanes) {
    int64_t one = along.first[o] * lanes, other = along.second[o] * lanes;
    T part = along.share[o], rest = T(1) - part;
    const T *a0 = x0 + one, *b0 = x0 + other, *a1 = x1 + one, *b1 = x1 + other;
    if (part == T(0)) {
#pragma GCC ivdep
      for (int64_t c = 0; c < lanes; ++c) y[c] = w0 * a0[c] + w1 * a1[c];
    } else {
#pragma GCC ivdep
      for (int64_t c = 0; c < lanes; ++c) {
        y[c] = w0 * (rest * a0[c] + part * b0[c]) + w1 * (rest * a1[c] + part * b1[c]);
      }
    }
  }
}

template <class T, class Place>
void read_lines(const ResampleLines& p, int64_t begin, int64_t end) {
  const ResampleTable *a = p.axes, *b = p.axes + 1, *c = p.axes + 2;
  Line<T, Place> along(*c);
  int64_t size = c->out * p.lanes, line_size = c->in * p.lanes;
  Kept<T> kept(size);
  for (int64_t row = begin; row < end; ++row) {
    int64_t plane = row / (a->out * b->out), i = row / b->out % a->out, j = row % b->out;
    T* y = static_cast<T*>(p.to) + row * size;
    count_steps(size / 8);
    const T* sources[4];
    T weights[4];
    int count = 0;
    if (p.lanes >= kManyLanes && !is_mixed(*a, i) && is_mixed(*b, j) && c->second != nullptr) {
      const T* x =
          static_cast<const T*>(p.from) + (plane * a->in + a->first[i]) * b->in * line_size;
      auto part = static_cast<T>(b->share[j]);
      mix_lanes(along, x + b->first[j] * line_size, x + b->second[j] * line_size, T(1) - part, part,
                p.lanes, y);
      continue;
    }
    each_source<T>(p, i, j, [&](int64_t u, int64_t v, T weight) {
      int slot = Kept<T>::slot(u, v);
      int64_t line = (plane * a->in + u) * b->in + v;
      if (kept.tags[slot] != line) {
        along.read(static_cast<const T*>(p.from) + line * line_size, kept.at(slot), p.lanes);
        kept.tags[slot] = line;
      }
      sources[count] = kept.at(slot);
      weights[count++] = weight;
    });
    const T *s0 = sources[0], *s1 = sources[1], *s2 = sources[2], *s3 = sources[3];
    T w0 = weights[0], w1 = weights[1], w2 = weights[2], w3 = weights[3];
    if (count == 1) {
      std::copy(s0, s0 + size, y);
    } else if (count == 2) {
#pragma GCC ivdep
      for (int64_t k = 0; k < size; ++k) y[k] = w0 * s0[k] + w1 * s1[k];
    } else {
#pragma GCC ivdep
      for (int64_t k = 0; k < size; ++k) {
        y[k] = (w0 * s0[k] + w1 * s1[k]) + (w2 * s2[k] + w3 * s3[k]);
      }
    }
  }
}

template <class T, class Place>
void spread_planes(const ResampleLines& p, int64_t begin, int64_t end) {
  const ResampleTable *a = p.axes, *b = p.axes + 1, *c = p.axes + 2;
  Line<T, Place> along(*c);
  int64_t size = c->out * p.lanes, line_size = c->in * p.lanes;
  Kept<T> kept(size);
  auto give_up = [&](int slot) {
    if (kept.tags[slot] >= 0) {
      along.spread(kept.at(slot), static_cast<T*>(p.to) + kept.tags[slot] * line_size, p.lanes);
    }
    kept.tags[slot] = -1;
  };
  for (int64_t plane = begin; plane < end; ++plane) {
    for (int64_t i = 0; i < a->out; ++i) {
      for (int64_t j = 0; j < b->out; ++j) {
        const T* g = static_cast<const T*>(p.from) + ((plane * a->out + i) * b->out + j) * size;
        count_steps(size / 8);
        each_source<T>(p, i, j, [&](int64_t u, int64_t v, T weight) {
          int slot = Kept<T>::slot(u, v);
          int64_t line = (plane * a->in + u) * b->in + v;
          T* sums = kept.at(slot);
          if (kept.tags[slot] == line) {
#pragma GCC ivdep
            for (int64_t k = 0; k < size; ++k) sums[k] += weight * g[k];
          } else {
            give_up(slot);
            kept.tags[slot] = line;
#pragma GCC ivdep
            for (int64_t k = 0; k < size; ++k) sums[k] = weight * g[k];
          }
        });
      }
    }
    for (int slot = 0; slot < 4; ++slot) give_up(slot);
  }
}

bool is_short(const ResampleLines& p) { return p.axes[2].in < int64_t{1} << 31; }
void read_kernel(const ResampleLines& p, int64_t begin, int64_t end) {
  if (p.dtype == kDouble) return read_lines<double, int64_t>(p, begin, end);
  is_short(p) ? read_lines<float, int32_t>(p, begin, end)
              : read_lines<float, int64_t>(p, begin, end);
}
void spread_kernel(const ResampleLines& p, int64_t begin, int64_t end) {
  p.dtype == kDouble ? spread_planes<double, int64_t>(p, begin, end)
                     : spread_planes<float, int64_t>(p, begin, end);
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(resample_on, &read_kernel);
LAMELLA_REGISTER_KERNEL(resample_backward_on, &spread_kernel);

}  // namespace lamella::native
