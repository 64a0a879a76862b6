// Windows over the last three dimensions of tensors [batch][channels][0][1][2]: pooling, sliding
// blocks, padding and interpolation, with their gradients.
//
// Note [Gradients are gathered]
//   A thread computes one element of the gradient by visiting the outputs that read it, in their
//   order. So nothing is written by two threads, results do not vary from run to run, and no memory
//   is cleared first.
#pragma once
#include <cmath>

#include "lamella/cuda/kernels/walk.h"

namespace lamella::cuda {

// The rule that relates positions of one dimension in the input and the output.
enum AxisRule : int32_t {
  kWindow,         // `reach` elements from o * stride - pad on, `step` apart
  kAdaptive,       // windows that cover the input evenly
  kReflect,        // from here on: one element, o - pad inside the input
  kReplicate,      //
  kNearest,        // o * scale
  kNearestExact,   // (o + 0.5) * scale
  kLinear,         // two elements around (o + 0.5) * scale - 0.5
  kLinearCorners,  // two elements around o * scale
};
struct WindowAxis {
  int64_t in, out;
  AxisRule rule;
  int32_t counts_padding;
  int64_t reach, stride, pad, step;
  double scale;
};
struct WindowParameters {
  int64_t planes, channels;  // planes: batch * channels
  WindowAxis axes[3];
  // In bytes: of batch, channel and the three dimensions. `indices` have the strides of `to` in a
  // pooling, and of `from` in its gradient.
  int64_t from_strides[5], to_strides[5], index_strides[5];
  uint64_t from, to, indices;
  int64_t divisor;  // of averages, if not 0
  uint64_t slot, any;
};

struct Span {
  int64_t begin, end;  // inside the input
  int64_t count;       // what an average divides by
};
LAMELLA_DEVICE Span span_of(const WindowAxis& a, int64_t o) {
  if (a.rule == kAdaptive) {
    const int64_t begin = o * a.in / a.out, end = ((o + 1) * a.in + a.out - 1) / a.out;
    return {begin, end, end - begin};
  }
  int64_t begin = o * a.stride - a.pad;
  const int64_t padded = a.in + a.pad;
  const int64_t covered = a.reach < padded - begin ? a.reach : padded - begin;
  int64_t end = begin + covered;
  if (end > a.in) end = a.in;
  if (begin < 0) begin += (-begin - 1) / a.step * a.step + a.step;
  return {begin, end, a.counts_padding != 0 ? covered : end - begin};
}
// The first and past the last output whose window may hold input position x.
LAMELLA_DEVICE void outputs_of(const WindowAxis& a, int64_t x, int64_t* begin, int64_t* end) {
  if (a.rule == kAdaptive) {
    *begin = x * a.out / a.in;
    *end = ((x + 1) * a.out + a.in - 1) / a.in;
  } else {
    const int64_t low = x + a.pad - a.reach + 1;
    *begin = low <= 0 ? 0 : (low + a.stride - 1) / a.stride;
    *end = (x + a.pad) / a.stride + 1;
  }
  if (*end > a.out) *end = a.out;
}

// Coordinates of element i of planes of the given sizes, and its offset.
struct Place {
  int64_t batch, channel, at[3];
};
template <bool kOut>
LAMELLA_DEVICE Place place_in(const WindowParameters& p, int64_t i) {
  Place place;
  for (int d = 2; d >= 0; --d) {
    const int64_t size = kOut ? p.axes[d].out : p.axes[d].in;
    const int64_t next =
        i <= INT32_MAX ? static_cast<uint32_t>(i) / static_cast<uint32_t>(size) : i / size;
    place.at[d] = i - next * size;
    i = next;
  }
  place.batch = i / p.channels;
  place.channel = i - place.batch * p.channels;
  return place;
}
LAMELLA_DEVICE int64_t plane_offset(const Place& place, const int64_t* strides) {
  return place.batch * strides[0] + place.channel * strides[1];
}
LAMELLA_DEVICE int64_t inner_offset(int64_t a, int64_t b, int64_t c, const int64_t* strides) {
  return a * strides[2] + b * strides[3] + c * strides[4];
}
LAMELLA_DEVICE int64_t offset_at(const Place& place, const int64_t* strides) {
  return plane_offset(place, strides) +
         inner_offset(place.at[0], place.at[1], place.at[2], strides);
}
template <class T>
LAMELLA_DEVICE computed_as<T> value_at(const char* plane, int64_t a, int64_t b, int64_t c,
                                       const int64_t* strides) {
  return loaded(*reinterpret_cast<const T*>(plane + inner_offset(a, b, c, strides)));
}
// Stores f(place, its plane of `from`) in `to`, for a thread's outputs or, without kOut, inputs.
template <class T, bool kOut, class F>
LAMELLA_DEVICE void each_place(const WindowParameters& p, int64_t thread, int64_t threads,
                               const F& f) {
  int64_t numel = p.planes;
  for (int d = 0; d < 3; ++d) numel *= kOut ? p.axes[d].out : p.axes[d].in;
  for (int64_t i = thread; i < numel; i += threads) {
    const Place place = place_in<kOut>(p, i);
    const T value = f(place, memory_at(p.from) + plane_offset(place, p.from_strides));
    *reinterpret_cast<T*>(device_pointer<char>(p.to) + offset_at(place, p.to_strides)) = value;
  }
}

// ---- Pooling ----

template <class T>
LAMELLA_DEVICE void max_pool(const WindowParameters& p, int64_t thread, int64_t threads) {
  using C = computed_as<T>;
  each_place<T, true>(p, thread, threads, [&](const Place& place, const char* plane) {
    const Span a = span_of(p.axes[0], place.at[0]), b = span_of(p.axes[1], place.at[1]),
               c = span_of(p.axes[2], place.at[2]);
    bool any = false;
    C most{};
    int64_t index = 0;
    for (int64_t x = a.begin; x < a.end; x += p.axes[0].step) {
      for (int64_t y = b.begin; y < b.end; y += p.axes[1].step) {
        for (int64_t z = c.begin; z < c.end; z += p.axes[2].step) {
          const C value = value_at<T>(plane, x, y, z, p.from_strides);
          // The first maximum, and the last NaN.
          if (any && !(value > most) && value == value) continue;
          any = true;
          most = value;
          index = (x * p.axes[1].in + y) * p.axes[2].in + z;
        }
      }
    }
    *reinterpret_cast<int64_t*>(device_pointer<char>(p.indices) +
                                offset_at(place, p.index_strides)) = index;
    return stored_as<T>(most);
  });
}
template <class T>
using sum_type = std::conditional_t<std::is_same_v<T, double>, double,
                                    std::conditional_t<std::is_integral_v<T>, int64_t, float>>;
template <class T>
LAMELLA_DEVICE void average_pool(const WindowParameters& p, int64_t thread, int64_t threads) {
  using C = sum_type<computed_as<T>>;
  each_place<T, true>(p, thread, threads, [&](const Place& place, const char* plane) {
    const Span a = span_of(p.axes[0], place.at[0]), b = span_of(p.axes[1], place.at[1]),
               c = span_of(p.axes[2], place.at[2]);
    C sum = 0;
    for (int64_t z = c.begin; z < c.end; z += p.axes[2].step) {
      C column = 0;
      for (int64_t x = a.begin; x < a.end; x += p.axes[0].step) {
        for (int64_t y = b.begin; y < b.end; y += p.axes[1].step) {
          column += static_cast<C>(value_at<T>(plane, x, y, z, p.from_strides));
        }
      }
      sum += column;
    }
    const int64_t count = p.divisor != 0 ? p.divisor : a.count * b.count * c.count;
    return stored_as<T>(static_cast<computed_as<T>>(sum / static_cast<C>(count)));
  });
}
// The gradients: `from` is that of the outputs, `to` that of the inputs.
template <class T, bool kMaximum>
LAMELLA_DEVICE void pool_backward(const WindowParameters& p, int64_t thread, int64_t threads) {
  using C = sum_type<computed_as<T>>;
  const int64_t inputs = p.axes[0].in * p.axes[1].in * p.axes[2].in;
  each_place<T, false>(p, thread, threads, [&](const Place& place, const char* plane) {
    const int64_t index_plane = plane_offset(place, p.index_strides);
    const int64_t own = (place.at[0] * p.axes[1].in + place.at[1]) * p.axes[2].in + place.at[2];
    int64_t begin[3], end[3];
    for (int d = 0; d < 3; ++d) outputs_of(p.axes[d], place.at[d], &begin[d], &end[d]);
    C sum = 0;
    for (int64_t x = begin[0]; x < end[0]; ++x) {
      for (int64_t y = begin[1]; y < end[1]; ++y) {
        for (int64_t z = begin[2]; z < end[2]; ++z) {
          const C grad = static_cast<C>(value_at<T>(plane, x, y, z, p.from_strides));
          if constexpr (kMaximum) {
            const int64_t index = *reinterpret_cast<const int64_t*>(
                memory_at(p.indices) + index_plane + inner_offset(x, y, z, p.index_strides));
            if (index < 0 || index >= inputs) report_index(p.slot, p.any, index);
            if (index == own) sum += grad;
          } else {
            const int64_t at[3] = {x, y, z};
            int64_t count = 1;
            bool inside = true;
            for (int d = 0; d < 3; ++d) {
              const Span span = span_of(p.axes[d], at[d]);
              inside = inside && place.at[d] >= span.begin && place.at[d] < span.end;
              count *= span.count;
            }
            if (inside) sum += grad / static_cast<C>(p.divisor != 0 ? p.divisor : count);
          }
        }
      }
    }
    return stored_as<T>(static_cast<computed_as<T>>(sum));
  });
}

// ---- Padding and interpolation ----

// The elements that output position o reads: `first`, and with weight `share` the one behind it.
template <class C>
struct Tap {
  int64_t first, second;
  C share;
};
LAMELLA_DEVICE int64_t element_at(double place, int64_t last) {
  if (!(place > 0)) return 0;
  return place < static_cast<double>(last) ? static_cast<int64_t>(place) : last;
}
template <class C>
LAMELLA_DEVICE Tap<C> tap_of(const WindowAxis& a, int64_t o) {
  const int64_t last = a.in - 1;
  if (a.rule == kReflect || a.rule == kReplicate) {
    const bool reflects = a.rule == kReflect;
    int64_t at = o - a.pad;
    if (at < 0) at = reflects ? -at : 0;
    if (at > last) at = reflects ? 2 * last - at : last;
    return {at, at, C(0)};
  }
  if (a.rule == kNearest || a.rule == kNearestExact) {
    const double at = static_cast<double>(o) + (a.rule == kNearestExact ? 0.5 : 0);
    // float32 as in PyTorch, so that ties fall to the same side.
    const float place = static_cast<float>(at) * static_cast<float>(a.scale);
    const int64_t i = element_at(static_cast<double>(place), last);
    return {i, i, C(0)};
  }
  const auto at = static_cast<double>(o);
  double place = a.rule == kLinearCorners ? at * a.scale : (at + 0.5) * a.scale - 0.5;
  if (!(place > 0)) place = 0;
  const int64_t i = element_at(place, last);
  double share = place - static_cast<double>(i);
  share = share < 0 ? 0 : share > 1 ? 1 : share;
  return {i, i < last ? i + 1 : i, static_cast<C>(share)};
}
// An infinite element with weight 0 must not produce NaN.
template <class C>
LAMELLA_DEVICE C mixed(C one, C other, C share) {
  return share == C(0) ? one : (C(1) - share) * one + share * other;
}
template <class T>
LAMELLA_DEVICE void resample(const WindowParameters& p, int64_t thread, int64_t threads) {
  using C = sum_type<computed_as<T>>;
  each_place<T, true>(p, thread, threads, [&](const Place& place, const char* plane) {
    const Tap<C> a = tap_of<C>(p.axes[0], place.at[0]), b = tap_of<C>(p.axes[1], place.at[1]),
                 c = tap_of<C>(p.axes[2], place.at[2]);
    auto line = [&](int64_t x, int64_t y) {
      const C one = value_at<T>(plane, x, y, c.first, p.from_strides);
      return mixed(one, value_at<T>(plane, x, y, c.second, p.from_strides), c.share);
    };
    const C wa[2] = {C(1) - a.share, a.share}, wb[2] = {C(1) - b.share, b.share};
    C result;
    if (a.share == C(0)) {
      result = b.share == C(0) ? line(a.first, b.first)
                               : wb[0] * line(a.first, b.first) + wb[1] * line(a.first, b.second);
    } else if (b.share == C(0)) {
      result = wa[0] * line(a.first, b.first) + wa[1] * line(a.second, b.first);
    } else {
      result =
          ((wa[0] * wb[0]) * line(a.first, b.first) + (wa[0] * wb[1]) * line(a.first, b.second)) +
          ((wa[1] * wb[0]) * line(a.second, b.first) + (wa[1] * wb[1]) * line(a.second, b.second));
    }
    return stored_as<T>(result);
  });
}
// Elements of any dtype that are only moved.
template <class T>
LAMELLA_DEVICE void pick(const WindowParameters& p, int64_t thread, int64_t threads) {
  each_place<T, true>(p, thread, threads, [&](const Place& place, const char* plane) {
    int64_t at[3];
    for (int d = 0; d < 3; ++d) at[d] = tap_of<float>(p.axes[d], place.at[d]).first;
    return *reinterpret_cast<const T*>(plane + inner_offset(at[0], at[1], at[2], p.from_strides));
  });
}

// The first output whose first element is x or more; taps are monotone but for reflections.
LAMELLA_DEVICE int64_t first_output(const WindowAxis& a, int64_t x) {
  int64_t low = 0, high = a.out;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (tap_of<float>(a, middle).first < x) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
// The outputs that may read input position x: up to three ranges.
LAMELLA_DEVICE int readers_of(const WindowAxis& a, int64_t x, int64_t (&begin)[3],
                              int64_t (&end)[3]) {
  if (a.rule == kReflect) {
    const int64_t at[3] = {a.pad - x, a.pad + x, 2 * (a.in - 1) - x + a.pad};
    int count = 0;
    for (int k = 0; k < 3; ++k) {
      // The ends are not repeated.
      if (at[k] < 0 || at[k] >= a.out || (k == 0 && x == 0) || (k == 2 && x == a.in - 1)) continue;
      if (tap_of<float>(a, at[k]).first != x) continue;
      begin[count] = at[k];
      end[count++] = at[k] + 1;
    }
    return count;
  }
  const bool mixes = a.rule == kLinear || a.rule == kLinearCorners;
  begin[0] = first_output(a, mixes ? x - 1 : x);
  end[0] = first_output(a, x + 1);
  return 1;
}
template <class C>
LAMELLA_DEVICE C weight_of(const WindowAxis& a, int64_t o, int64_t x) {
  const Tap<C> tap = tap_of<C>(a, o);
  C weight = tap.first == x ? C(1) - tap.share : C(0);
  if (tap.second == x) weight += tap.share;
  return weight;
}
template <class T>
LAMELLA_DEVICE void resample_backward(const WindowParameters& p, int64_t thread, int64_t threads) {
  using C = sum_type<computed_as<T>>;
  each_place<T, false>(p, thread, threads, [&](const Place& place, const char* plane) {
    int64_t begin[3][3], end[3][3];
    int counts[3];
    for (int d = 0; d < 3; ++d) counts[d] = readers_of(p.axes[d], place.at[d], begin[d], end[d]);
    C sum = 0;
    for (int u = 0; u < counts[0]; ++u) {
      for (int64_t x = begin[0][u]; x < end[0][u]; ++x) {
        const C wx = weight_of<C>(p.axes[0], x, place.at[0]);
        for (int v = 0; v < counts[1] && wx != C(0); ++v) {
          for (int64_t y = begin[1][v]; y < end[1][v]; ++y) {
            const C wy = wx * weight_of<C>(p.axes[1], y, place.at[1]);
            for (int w = 0; w < counts[2] && wy != C(0); ++w) {
              for (int64_t z = begin[2][w]; z < end[2][w]; ++z) {
                const C weight = weight_of<C>(p.axes[2], z, place.at[2]);
                if (weight == C(0)) continue;
                sum += wy * weight * static_cast<C>(value_at<T>(plane, x, y, z, p.from_strides));
              }
            }
          }
        }
      }
    }
    return stored_as<T>(static_cast<computed_as<T>>(sum));
  });
}

// ---- Sliding blocks ----

// Columns of an image: to[n][c][i][j][output]. Dimensions 1 and 2 of the axes are used; `in` is the
// image and `out` the number of blocks, and `kernel` has the size of a block.
struct ColumnParameters {
  WindowParameters w;
  int64_t kernel[2];
  uint64_t image, columns;  // contiguous
};
template <class T>
LAMELLA_DEVICE void to_columns(const ColumnParameters& p, int64_t thread, int64_t threads) {
  const WindowAxis &rows = p.w.axes[1], &line = p.w.axes[2];
  const int64_t blocks = rows.out * line.out, taps = p.kernel[0] * p.kernel[1];
  for (int64_t i = thread; i < p.w.planes * taps * blocks; i += threads) {
    const int64_t plane = i / (taps * blocks), tap = i / blocks % taps, block = i % blocks;
    const int64_t y = block / line.out * rows.stride - rows.pad + tap / p.kernel[1] * rows.step;
    const int64_t x = block % line.out * line.stride - line.pad + tap % p.kernel[1] * line.step;
    T value{};
    if (y >= 0 && y < rows.in && x >= 0 && x < line.in) {
      value = device_pointer<const T>(p.image)[(plane * rows.in + y) * line.in + x];
    }
    device_pointer<T>(p.columns)[i] = value;
  }
}
template <class T>
LAMELLA_DEVICE void from_columns(const ColumnParameters& p, int64_t thread, int64_t threads) {
  using C = computed_as<T>;
  const WindowAxis &rows = p.w.axes[1], &line = p.w.axes[2];
  const int64_t blocks = rows.out * line.out, taps = p.kernel[0] * p.kernel[1];
  for (int64_t i = thread; i < p.w.planes * rows.in * line.in; i += threads) {
    const int64_t x = i % line.in, y = i / line.in % rows.in, plane = i / line.in / rows.in;
    C sum{};
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t v = y + rows.pad - tap / p.kernel[1] * rows.step;
      const int64_t u = x + line.pad - tap % p.kernel[1] * line.step;
      if (v < 0 || u < 0 || v % rows.stride != 0 || u % line.stride != 0) continue;
      if (v / rows.stride >= rows.out || u / line.stride >= line.out) continue;
      const int64_t block = v / rows.stride * line.out + u / line.stride;
      sum += loaded(device_pointer<const T>(p.columns)[(plane * taps + tap) * blocks + block]);
    }
    device_pointer<T>(p.image)[i] = stored_as<T>(sum);
  }
}

// f(kernel, Parameters, body)
#define LAMELLA_WINDOW_KERNELS(f)              \
  LAMELLA_EACH_FLOAT(LAMELLA_FLOAT_WINDOWS, f) \
  LAMELLA_EACH_SIZE(LAMELLA_MOVED_WINDOWS, f)  \
  LAMELLA_WHOLE_WINDOWS(f, uint8_t, u8)        \
  LAMELLA_WHOLE_WINDOWS(f, int8_t, i8)         \
  LAMELLA_WHOLE_WINDOWS(f, int16_t, i16)       \
  LAMELLA_WHOLE_WINDOWS(f, int32_t, i32)       \
  LAMELLA_WHOLE_WINDOWS(f, int64_t, i64)       \
  f(average_pool_i64, WindowParameters, average_pool<int64_t>)
#define LAMELLA_WHOLE_WINDOWS(f, T, suffix) f(max_pool_##suffix, WindowParameters, max_pool<T>)
#define LAMELLA_MOVED_WINDOWS(f, T, suffix)   \
  f(pick_##suffix, WindowParameters, pick<T>) \
      f(to_columns_##suffix, ColumnParameters, to_columns<T>)
#define LAMELLA_FLOAT_WINDOWS(f, T, suffix)                                             \
  LAMELLA_WHOLE_WINDOWS(f, T, suffix)                                                   \
  f(average_pool_##suffix, WindowParameters, average_pool<T>)                           \
      f(max_pool_backward_##suffix, WindowParameters, pool_backward<T, true>)           \
          f(average_pool_backward_##suffix, WindowParameters, pool_backward<T, false>)  \
              f(resample_##suffix, WindowParameters, resample<T>)                       \
                  f(resample_backward_##suffix, WindowParameters, resample_backward<T>) \
                      f(from_columns_##suffix, ColumnParameters, from_columns<T>)

}  // namespace lamella::cuda
