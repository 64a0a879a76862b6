// Maxima and averages of pooling windows: Note [Rows of a pooling].
#include "lamella/kernels/cpu/simd/pooling.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "lamella/core/interrupt.h"
#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

constexpr int64_t kBlock = 64;  // results that are computed together
constexpr int64_t kWide = 32;   // for windows this wide, lanes are the positions of one window
constexpr int64_t kFew = 8;     // windows that are averaged one by one
// Blocks are rounded up to whole vectors if the excess elements that are read lie in memory.
constexpr int64_t kStep = 16;
int64_t whole(int64_t n) { return (n + kStep - 1) / kStep * kStep; }

using Segment = PoolSegment;
std::vector<Segment> segments_of(const PoolRows& p) {
  std::vector<Segment> found;
  for (int64_t o = 0; o < p.out[2]; ++o) {
    const PoolRange& now = p.ranges[2][o];
    if (!found.empty()) {
      Segment& s = found.back();
      const PoolRange& before = p.ranges[2][o - 1];
      int64_t stride = now.begin - before.begin;
      PoolRange moved = before;
      moved.begin += stride;
      moved.end += stride;
      if (moved == now && (s.count == 1 || s.stride == stride)) {
        s.stride = stride;
        ++s.count;
        continue;
      }
    }
    found.push_back({o, 1, 1, now});
  }
  return found;
}

// Calls f(x + offset) for the offsets of the lines of a window.
template <class F>
void each_line(const PoolRows& p, const PoolRange& a, const PoolRange& b, F&& f) {
  for (int64_t i = a.begin; i < a.end; i += a.step) {
    for (int64_t j = b.begin; j < b.end; j += b.step) f((i * p.in[1] + j) * p.in[2]);
  }
}
int64_t lines_of(const PoolRange& a, const PoolRange& b) {
  return (a.end - a.begin) * (b.end - b.begin);
}

// Calls f(plane, ranges of dimensions 0 and 1, row) for rows [begin, end).
template <class F>
void each_row(const PoolRows& p, int64_t begin, int64_t end, F&& f) {
  for (int64_t r = begin; r < end; ++r) {
    f(r / (p.out[0] * p.out[1]), p.ranges[0][r / p.out[1] % p.out[0]], p.ranges[1][r % p.out[1]],
      r);
  }
}

// x[j * step] for j in [0, n): in place, or copied to contiguous memory.
template <class T>
const T* strided(const T* x, int64_t step, int64_t n, T (&room)[kBlock]) {
  if (step == 1) return x;
  if (step == 2) {
    for (int64_t j = 0; j < n; ++j) room[j] = x[2 * j];
  } else if (step == 3) {
    for (int64_t j = 0; j < n; ++j) room[j] = x[3 * j];
  } else {
    for (int64_t j = 0; j < n; ++j) room[j] = x[step * j];
  }
  return room;
}

// ---- Maximum ----

// Indices have the width of the elements, so that vectors of both have equally many lanes.
template <class T>
using Place = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

template <class T>
struct Maxima {
  T best[kBlock];
  Place<T> at[kBlock];

  void begin(int64_t place, int64_t move, int64_t n) {
    constexpr T kLeast = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                              : std::numeric_limits<T>::lowest();
    for (int64_t j = 0; j < n; ++j) {
      best[j] = kLeast;
      at[j] = static_cast<Place<T>>(place + move * j);
    }
  }
  // Updates maximum j with x[j], which is at position place + move * j of the plane. The first
  // maximum counts, or the last NaN.
  void take(const T* x, int64_t place, int64_t move, int64_t n) {
    const auto first = static_cast<Place<T>>(place), each = static_cast<Place<T>>(move);
    T* values = best;
    Place<T>* places = at;
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      T value = x[j];
      bool better = (value > values[j]) | v_is_nan(value);
      values[j] = better ? value : values[j];
      places[j] = better ? first + each * static_cast<Place<T>>(j) : places[j];
    }
  }
  void store(T* out, int64_t* indices, int64_t n) const {
    for (int64_t j = 0; j < n; ++j) {
      out[j] = best[j];
      indices[j] = at[j];
    }
  }
  // The same for x[j] at position from[j] + move.
  void take(const T* x, const Place<T>* from, int64_t move, int64_t n) {
    const auto by = static_cast<Place<T>>(move);
    T* values = best;
    Place<T>* places = at;
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      T value = x[j];
      bool better = (value > values[j]) | (value != value);  // NOLINT(misc-redundant-expression)
      values[j] = better ? value : values[j];
      places[j] = better ? from[j] + by : places[j];
    }
  }
  // Reduces all lanes, which hold positions of one window, to the maximum in the first lane.
  void join(int64_t n) {
    for (int64_t j = 1; j < n; ++j) {
      bool nan = best[j] != best[j], is_nan = best[0] != best[0];
      bool later = at[j] > at[0];
      bool better =
          nan ? !is_nan || later : !is_nan && (best[j] > best[0] || (best[j] == best[0] && !later));
      if (better) {
        best[0] = best[j];
        at[0] = at[j];
      }
    }
  }
};

// Processes several short rows of windows together, if all windows have one size and distance, and
// none crosses an edge.
template <class T>
class ShortRows {
 public:
  ShortRows(const PoolRows& p, const std::vector<Segment>& segments) : p_(p) {
    constexpr int64_t kMaxPlaneOutputs = 1 << 14;
    const PoolRange &a = p.ranges[0][0], &b = p.ranges[1][0];
    taken_ = p.lanes == 1 && segments.size() == 1 && 2 * p.out[2] <= kBlock &&
             segments[0].taps() < kWide && p.out[0] * p.out[1] * p.out[2] <= kMaxPlaneOutputs;
    auto as_large = [](const PoolRange& x, const PoolRange& y) {
      return x.end - x.begin == y.end - y.begin && x.step == y.step;
    };
    for (int64_t o = 0; taken_ && o < p.out[0]; ++o) taken_ = as_large(p.ranges[0][o], a);
    for (int64_t o = 0; taken_ && o < p.out[1]; ++o) taken_ = as_large(p.ranges[1][o], b);
    if (!taken_) return;
    together_ = kBlock / p.out[2];
    for (int64_t row = 0; row < p.out[0] * p.out[1] + together_; ++row) {
      int64_t plane_row = row % (p.out[0] * p.out[1]);
      int64_t begin = (p.ranges[0][plane_row / p.out[1]].begin * p.in[1] +
                       p.ranges[1][plane_row % p.out[1]].begin) *
                          p.in[2] +
                      segments[0].range.begin;
      rows_.push_back(begin);
      for (int64_t o = 0; o < p.out[2]; ++o) {
        windows_.push_back(static_cast<Place<T>>(begin + o * segments[0].stride));
      }
    }
  }
  bool taken() const { return taken_; }
  void run(const Segment& s, int64_t begin, int64_t end) {
    Maxima<T> maxima;
    int64_t in_plane = p_.out[0] * p_.out[1], inputs = p_.in[0] * p_.in[1] * p_.in[2];
    const PoolRange &a = p_.ranges[0][0], &b = p_.ranges[1][0];
    // For windows that do not overlap, whole lines are copied together.
    int64_t pitch = s.stride * p_.out[2];
    bool apart = s.taps() * s.range.step <= s.stride && s.range.begin + pitch <= p_.in[2] &&
                 s.stride <= kMaxCopiedStride;
    T lines[kMaxCopiedStride * kBlock], staged[kBlock];
    const T* starts[kBlock];
    const T* plane = static_cast<const T*>(p_.from) + begin / in_plane * inputs;
    for (int64_t row = begin, inside = begin % in_plane; row < end; row += together_) {
      int64_t rows = std::min(together_, end - row), n = rows * p_.out[2];
      const Place<T>* windows = windows_.data() + inside * p_.out[2];
      for (int64_t r = 0; r < rows; ++r) {
        starts[r] = plane + rows_[static_cast<size_t>(inside)];
        if (++inside == in_plane) {
          inside = 0;
          plane += inputs;
        }
      }
      count_steps(lines_of(a, b));
      maxima.begin(0, 0, n);
      std::copy(windows, windows + n, maxima.at);
      for (int64_t i = 0; i < a.end - a.begin; i += a.step) {
        for (int64_t j = 0; j < b.end - b.begin; j += b.step) {
          int64_t line = (i * p_.in[1] + j) * p_.in[2];
          for (int64_t r = 0; apart && r < rows; ++r) {
            copy_line(starts[r] + line, pitch, lines + r * pitch);
          }
          for (int64_t t = 0; t < s.taps(); ++t) {
            int64_t move = line + t * s.range.step;
            for (int64_t r = 0; !apart && r < rows; ++r) {
              const T* from = starts[r] + move;
              for (int64_t o = 0; o < p_.out[2]; ++o)
                staged[r * p_.out[2] + o] = from[o * s.stride];
            }
            const T* x = apart ? strided(lines + t * s.range.step, s.stride, n, staged) : staged;
            maxima.take(x, windows, move, n);
          }
        }
      }
      maxima.store(static_cast<T*>(p_.to) + row * p_.out[2], p_.indices + row * p_.out[2], n);
    }
  }

 private:
  static constexpr int64_t kMaxCopiedStride = 8;

  // Copies four elements at a time, because lines are short.
  static void copy_line(const T* from, int64_t n, T* to) {
    if (n % 4 == 0) {
      for (int64_t x = 0; x < n; x += 4) std::memcpy(to + x, from + x, 4 * sizeof(T));
    } else {
      for (int64_t x = 0; x < n; ++x) to[x] = from[x];
    }
  }
  const PoolRows& p_;
  bool taken_;
  int64_t together_ = 1;
  std::vector<int64_t> rows_;
  std::vector<Place<T>> windows_;  // position in the plane of each window's first element, by rows
};

template <class T>
void max_rows(const PoolRows& p, int64_t begin, int64_t end) {
  std::vector<Segment> segments = segments_of(p);
  ShortRows<T> short_rows(p, segments);
  if (short_rows.taken()) return short_rows.run(segments[0], begin, end);
  Maxima<T> maxima;
  T staged[kBlock];
  each_row(p, begin, end, [&](int64_t plane, const PoolRange& a, const PoolRange& b, int64_t row) {
    const T* x = static_cast<const T*>(p.from) + plane * p.in[0] * p.in[1] * p.in[2] * p.lanes;
    T* y = static_cast<T*>(p.to) + row * p.out[2] * p.lanes;
    int64_t* at = p.indices + row * p.out[2] * p.lanes;
    int64_t lead = (a.begin * p.in[1] + b.begin) * p.in[2];
    // The number of elements from the beginning of the last line of the window to the end of the
    // tensor.
    int64_t room = (p.planes - plane) * p.in[0] * p.in[1] * p.in[2] -
                   ((a.end - 1) * p.in[1] + b.end - 1) * p.in[2];
    for (const Segment& s : segments) {
      int64_t taps = s.taps(), step = s.range.step;
      if (p.lanes == 1 && taps >= kWide && step == 1) {
        for (int64_t o = 0; o < s.count; ++o) {
          int64_t from = s.range.begin + o * s.stride;
          count_steps(lines_of(a, b));
          maxima.begin(lead + from, 0, kBlock);
          each_line(p, a, b, [&](int64_t line) {
            for (int64_t t = 0; t < taps; t += kBlock) {
              int64_t place = line + from + t;
              maxima.take(x + place, place, 1, std::min(kBlock, taps - t));
            }
          });
          maxima.join(std::min(kBlock, taps));
          maxima.store(y + s.first + o, at + s.first + o, 1);
        }
      } else if (p.lanes == 1) {
        for (int64_t o = 0; o < s.count; o += kBlock) {
          int64_t n = std::min(kBlock, s.count - o), from = s.range.begin + o * s.stride;
          bool has_room = room > from + taps * step + whole(n) * s.stride;
          int64_t filled = has_room ? whole(n) : n;
          count_steps(lines_of(a, b));
          maxima.begin(lead + from, s.stride, filled);
          each_line(p, a, b, [&](int64_t line) {
            for (int64_t t = 0; t < taps; ++t) {
              int64_t place = line + from + t * step;
              maxima.take(strided(x + place, s.stride, filled, staged), place, s.stride, filled);
            }
          });
          maxima.store(y + s.first + o, at + s.first + o, n);
        }
      } else {
        for (int64_t o = 0; o < s.count; ++o) {
          int64_t from = s.range.begin + o * s.stride, to = (s.first + o) * p.lanes;
          for (int64_t c = 0; c < p.lanes; c += kBlock) {
            int64_t n = std::min(kBlock, p.lanes - c);
            count_steps(lines_of(a, b));
            maxima.begin(lead + from, 0, n);
            each_line(p, a, b, [&](int64_t line) {
              for (int64_t t = 0; t < taps; ++t) {
                int64_t place = line + from + t * step;
                maxima.take(x + place * p.lanes + c, place, 0, n);
              }
            });
            maxima.store(y + to + c, at + to + c, n);
          }
        }
      }
    }
  });
}

// The maxima alone.
template <class T>
void max_values(const PoolRows& p, int64_t begin, int64_t end) {
  T best[kBlock], staged[kBlock];
  each_row(p, begin, end, [&](int64_t plane, const PoolRange& a, const PoolRange& b, int64_t row) {
    const T* x = static_cast<const T*>(p.from) + plane * p.in[0] * p.in[1] * p.in[2];
    T* y = static_cast<T*>(p.to) + row * p.out[2];
    for (const Segment& s : std::span(p.segments, p.segment_count)) {
      for (int64_t o = 0; o < s.count; o += kBlock) {
        const int64_t n = std::min(kBlock, s.count - o), from = s.range.begin + o * s.stride;
        count_steps(lines_of(a, b));
        std::fill(best, best + kBlock, -std::numeric_limits<T>::infinity());
        each_line(p, a, b, [&](int64_t line) {
          for (int64_t t = 0; t < s.taps(); ++t) {
            const T* values = strided(x + line + from + t * s.range.step, s.stride, n, staged);
#pragma GCC ivdep
            for (int64_t j = 0; j < n; ++j) {
              const bool better = (values[j] > best[j]) | v_is_nan(values[j]);
              best[j] = better ? values[j] : best[j];
            }
          }
        });
        std::copy(best, best + n, y + s.first + o);
      }
    }
  });
}

// ---- Average ----

// Integer division in which the least integer divided by -1 wraps.
template <class T>
void divide(T* out, const T* sums, int64_t count, int64_t n) {
  if constexpr (std::is_integral_v<T>) {
    for (int64_t j = 0; j < n; ++j) {
      out[j] = count == -1 ? static_cast<T>(0 - static_cast<uint64_t>(sums[j])) : sums[j] / count;
    }
  } else {
    const T by = static_cast<T>(count);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) out[j] = sums[j] / by;
  }
}
template <class T>
void add(T* sums, const T* x, int64_t n) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) sums[j] += x[j];
}
// The same for `count` rows of x, which are `stride` apart.
template <class T>
void add_rows(T* sums, const T* x, int64_t count, int64_t stride, int64_t n) {
  if (n != kBlock) {
    for (int64_t t = 0; t < count; ++t, x += stride) add(sums, x, n);
    return;
  }
  typedef T Lanes __attribute__((vector_size(kVecBytes), aligned(sizeof(T)), may_alias));
  constexpr int64_t kVectors = kBlock * static_cast<int64_t>(sizeof(T)) / kVecBytes;
  auto at = [](auto* from, int64_t v) { return reinterpret_cast<Lanes*>(from) + v; };
  Lanes held[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) held[v] = *at(sums, v);
  for (int64_t t = 0; t < count; ++t, x += stride) {
    for (int64_t v = 0; v < kVectors; ++v) held[v] += *at(const_cast<T*>(x), v);
  }
  for (int64_t v = 0; v < kVectors; ++v) *at(sums, v) = held[v];
}
// The sum of n >= kStep elements. Whatever the width of vectors, each of four groups of 64 bytes
// has its own sums, so that the result is the same for all.
template <class T>
T sum_of(const T* x, int64_t n) {
  typedef T Lanes __attribute__((vector_size(kVecBytes), aligned(sizeof(T)), may_alias));
  constexpr int64_t kGroup = 64 / sizeof(T), kLanes = kVecBytes / sizeof(T);
  constexpr int64_t kVectors = 64 / kVecBytes;  // of a group
  Lanes sums[4 * kVectors] = {};
  auto at = [](const T* from, int64_t v) { return reinterpret_cast<const Lanes*>(from)[v]; };
  int64_t i = 0;
  for (; i + 4 * kGroup <= n; i += 4 * kGroup) {
    for (int64_t v = 0; v < 4 * kVectors; ++v) sums[v] += at(x + i, v);
  }
  for (; i + kGroup <= n; i += kGroup) {
    for (int64_t v = 0; v < kVectors; ++v) sums[v] += at(x + i, v);
  }
  T parts[kGroup];
  for (int64_t v = 0; v < kVectors; ++v) {
    if (i < n) {
      // Of the last group the elements are added that were not yet.
      Lanes last = at(x + n - kGroup, v);
      for (int64_t j = 0; j < kLanes; ++j) {
        last[j] = v * kLanes + j >= kGroup - (n - i) ? last[j] : T(0);
      }
      sums[kVectors + v] += last;
    }
    reinterpret_cast<Lanes*>(parts)[v] =
        (sums[v] + sums[kVectors + v]) + (sums[2 * kVectors + v] + sums[3 * kVectors + v]);
  }
  for (int64_t half = kGroup / 2; half > 0; half /= 2) {
    for (int64_t j = 0; j < half; ++j) parts[j] += parts[j + half];
  }
  return parts[0];
}

template <class T>
void average_rows(const PoolRows& p, int64_t begin, int64_t end) {
  std::vector<Segment> segments = segments_of(p);
  const bool is_line = p.lanes == 1 && p.in[0] * p.in[1] == 1 && p.out[0] * p.out[1] == 1;
  if (is_line && p.out[2] == 1 && segments[0].taps() >= kStep) {
    // One window covers a plane, which is a single line.
    const Segment& s = segments[0];
    int64_t count = p.ranges[0][0].count * p.ranges[1][0].count * s.range.count;
    for (int64_t row = begin; row < end; ++row) {
      const T* x = static_cast<const T*>(p.from) + row * p.in[2] + s.range.begin;
      T sum = sum_of(x, s.taps());
      count_steps(1);
      divide(static_cast<T*>(p.to) + row, &sum, p.divisor != 0 ? p.divisor : count, 1);
    }
    return;
  }
  int64_t widest = 0;
  for (const Segment& s : segments) widest = std::max(widest, s.stride);
  std::vector<T> line_sum(static_cast<size_t>(p.lanes == 1 ? p.in[2] + kStep * widest : 0));
  T sums[kBlock], staged[kBlock];
  each_row(p, begin, end, [&](int64_t plane, const PoolRange& a, const PoolRange& b, int64_t row) {
    const T* x = static_cast<const T*>(p.from) + plane * p.in[0] * p.in[1] * p.in[2] * p.lanes;
    T* y = static_cast<T*>(p.to) + row * p.out[2] * p.lanes;
    const T* columns = line_sum.data();
    bool one = lines_of(a, b) == 1 && p.out[2] == 1, first = true;
    if (p.lanes == 1) {
      count_steps(lines_of(a, b));
      if (lines_of(a, b) <= 0) std::fill(line_sum.begin(), line_sum.end(), T(0));
      each_line(p, a, b, [&](int64_t line) {
        if (one) {
          columns = x + line;
        } else if (first) {
          std::copy(x + line, x + line + p.in[2], line_sum.begin());
        } else {
          add(line_sum.data(), x + line, p.in[2]);
        }
        first = false;
      });
    }
    for (const Segment& s : segments) {
      int64_t taps = s.taps();
      int64_t count = p.divisor != 0 ? p.divisor : a.count * b.count * s.range.count;
      if (p.lanes == 1 && (taps >= kWide || (one && taps >= kStep))) {
        for (int64_t o = 0; o < s.count; ++o) {
          T sum = sum_of(columns + s.range.begin + o * s.stride, taps);
          divide(y + s.first + o, &sum, count, 1);
        }
      } else if (p.lanes == 1 && s.count < kFew) {
        for (int64_t o = 0; o < s.count; ++o) {
          const T* from = columns + s.range.begin + o * s.stride;
          T sum = T(0);
          for (int64_t t = 0; t < taps; ++t) sum += from[t];
          divide(y + s.first + o, &sum, count, 1);
        }
      } else if (p.lanes == 1) {
        for (int64_t o = 0; o < s.count; o += kBlock) {
          int64_t n = std::min(kBlock, s.count - o), filled = one ? n : whole(n);
          const T* from = columns + s.range.begin + o * s.stride;
          for (int64_t j = 0; j < filled; ++j) sums[j] = T(0);
          for (int64_t t = 0; t < taps; ++t) {
            add(sums, strided(from + t, s.stride, filled, staged), filled);
          }
          divide(y + s.first + o, sums, count, n);
        }
      } else {
        for (int64_t o = 0; o < s.count; ++o) {
          int64_t from = s.range.begin + o * s.stride, to = (s.first + o) * p.lanes;
          for (int64_t c = 0; c < p.lanes; c += kBlock) {
            int64_t n = std::min(kBlock, p.lanes - c);
            count_steps(lines_of(a, b));
            for (int64_t j = 0; j < n; ++j) sums[j] = T(0);
            each_line(p, a, b, [&](int64_t line) {
              add_rows(sums, x + (line + from) * p.lanes + c, taps, p.lanes, n);
            });
            divide(y + to + c, sums, count, n);
          }
        }
      }
    }
  });
}

template <class T>
void average_backward_lanes(const PoolRows& p, int64_t begin, int64_t end) {
  std::vector<Segment> segments = segments_of(p);
  std::vector<T> columns(static_cast<size_t>(p.lanes == 1 ? p.in[2] : 0));
  T shares[kBlock];
  int64_t inputs = p.in[0] * p.in[1] * p.in[2], rows = p.out[0] * p.out[1];
  while (begin < end) {
    int64_t plane = begin / p.lanes, first = begin % p.lanes;
    int64_t last = std::min(p.lanes, first + end - begin);
    T* x = static_cast<T*>(p.to) + plane * inputs * p.lanes;
    each_row(p, plane * rows, (plane + 1) * rows,
             [&](int64_t, const PoolRange& a, const PoolRange& b, int64_t row) {
               const T* g = static_cast<const T*>(p.from) + row * p.out[2] * p.lanes;
               if (p.lanes == 1) std::fill(columns.begin(), columns.end(), T(0));
               for (const Segment& s : segments) {
                 int64_t taps = s.taps();
                 int64_t count = p.divisor != 0 ? p.divisor : a.count * b.count * s.range.count;
                 if (p.lanes == 1) {
                   count_steps(s.count);
                   for (int64_t o = 0; o < s.count; o += kBlock) {
                     int64_t n = std::min(kBlock, s.count - o);
                     divide(shares, g + s.first + o, count, n);
                     T* to = columns.data() + s.range.begin + o * s.stride;
                     // Windows of a segment with distance 0 all cover the same positions.
                     for (int64_t t = 0; t < taps; ++t) {
                       for (int64_t j = 0; j < n; ++j) to[j * s.stride + t] += shares[j];
                     }
                   }
                   continue;
                 }
                 for (int64_t o = 0; o < s.count; ++o) {
                   int64_t at = s.range.begin + o * s.stride;
                   for (int64_t c = first; c < last; c += kBlock) {
                     int64_t n = std::min(kBlock, last - c);
                     count_steps(lines_of(a, b));
                     divide(shares, g + (s.first + o) * p.lanes + c, count, n);
                     each_line(p, a, b, [&](int64_t line) {
                       T* to = x + (line + at) * p.lanes + c;
                       for (int64_t t = 0; t < taps; ++t, to += p.lanes) add(to, shares, n);
                     });
                   }
                 }
               }
               if (p.lanes == 1) {
                 count_steps(lines_of(a, b));
                 each_line(p, a, b, [&](int64_t line) { add(x + line, columns.data(), p.in[2]); });
               }
             });
    begin += last - first;
  }
}

void max_kernel(const PoolRows& p, int64_t begin, int64_t end) {
  if (p.indices == nullptr) {
    return p.dtype == kFloat ? max_values<float>(p, begin, end) : max_values<double>(p, begin, end);
  }
  switch (p.dtype) {
    case kFloat:
      return max_rows<float>(p, begin, end);
    case kDouble:
      return max_rows<double>(p, begin, end);
    case kInt:
      return max_rows<int32_t>(p, begin, end);
    default:
      return max_rows<int64_t>(p, begin, end);
  }
}
void average_kernel(const PoolRows& p, int64_t begin, int64_t end) {
  switch (p.dtype) {
    case kFloat:
      return average_rows<float>(p, begin, end);
    case kDouble:
      return average_rows<double>(p, begin, end);
    default:
      return average_rows<int64_t>(p, begin, end);
  }
}
void average_backward_kernel(const PoolRows& p, int64_t begin, int64_t end) {
  if (p.dtype == kDouble) return average_backward_lanes<double>(p, begin, end);
  average_backward_lanes<float>(p, begin, end);
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(max_pool_on, &max_kernel);
LAMELLA_REGISTER_KERNEL(average_pool_on, &average_kernel);
LAMELLA_REGISTER_KERNEL(average_pool_backward_on, &average_backward_kernel);

}  // namespace lamella::native
