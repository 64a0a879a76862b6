// Columns of convolutions: Note [Convolutions as matrix products] in convolution.cpp.
#include <algorithm>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/convolution_parts.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {
namespace {

// Calls f(first, o, begin, end) for each line of output positions of the kernel's element `tap`, in
// order: `o` is the line's first output. Its outputs begin <= x < end are gathered from the
// channel's inputs first + x * stride[2]; the others lie in the padding.
template <class F>
void walk_lines(const Volume& v, int64_t tap, F&& f) {
  int64_t tw = tap % v.kernel[2], th = tap / v.kernel[2] % v.kernel[1],
          td = tap / v.kernel[2] / v.kernel[1];
  const int64_t w = tw * v.dilation[2] - v.padding[2], step = v.stride[2], last = v.in[2] - 1 - w;
  const int64_t end = last < 0 ? 0 : std::min(last / step + 1, v.out[2]);
  const int64_t begin = std::min(w < 0 ? (step - 1 - w) / step : 0, end);
  int64_t o = 0;
  for (int64_t z = 0; z < v.out[0]; ++z) {
    int64_t d = z * v.stride[0] - v.padding[0] + td * v.dilation[0];
    for (int64_t y = 0; y < v.out[1]; ++y, o += v.out[2]) {
      int64_t h = y * v.stride[1] - v.padding[1] + th * v.dilation[1];
      bool inside = d >= 0 && d < v.in[0] && h >= 0 && h < v.in[1];
      f((d * v.in[1] + h) * v.in[2] + w, o, inside ? begin : 0, inside ? end : 0);
    }
  }
}

template <class T>
void gather(const Volume& v, const T* src, T* columns, int64_t channels) {
  const int64_t step = v.stride[2], width = v.out[2];
  auto row = [&](int64_t r) {
    const T* from = src + r / v.taps * v.inputs;
    T* to = columns + r * v.outputs;
    walk_lines(v, r % v.taps, [&](int64_t first, int64_t o, int64_t begin, int64_t end) {
      std::fill(to + o, to + o + begin, T(0));
      if (step == 1) {
        std::copy(from + first + begin, from + first + end, to + o + begin);
      } else {
        for (int64_t x = begin; x < end; ++x) to[o + x] = from[first + x * step];
      }
      std::fill(to + o + end, to + o + width, T(0));
    });
  };
  parallel_for(0, channels * v.taps, kGrainSize / (v.outputs + 1) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) row(r);
               });
}

template <class T>
void scatter(const Volume& v, const T* columns, T* src, int64_t channels) {
  const int64_t step = v.stride[2];
  auto channel = [&](int64_t c) {
    T* to = src + c * v.inputs;
    std::fill(to, to + v.inputs, T(0));
    for (int64_t tap = 0; tap < v.taps; ++tap) {
      const T* from = columns + (c * v.taps + tap) * v.outputs;
      walk_lines(v, tap, [&](int64_t first, int64_t o, int64_t begin, int64_t end) {
        for (int64_t x = begin; x < end; ++x) {
          T& sum = to[first + x * step];
          sum = sum + from[o + x];
        }
      });
    }
  };
  parallel_for(0, channels, kGrainSize / (v.outputs * v.taps + 1) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t c = begin; c < end; ++c) channel(c);
               });
}
}  // namespace

void to_columns(const char* op, ScalarType dtype, const Volume& v, const void* src, void* columns,
                int64_t channels) {
  visit_numbers(dtype, op, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    gather(v, static_cast<const T*>(src), static_cast<T*>(columns), channels);
  });
}
void from_columns(const char* op, ScalarType dtype, const Volume& v, const void* columns, void* src,
                  int64_t channels) {
  visit_numbers(dtype, op, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    scatter(v, static_cast<const T*>(columns), static_cast<T*>(src), channels);
  });
}
void convolution_to_columns(const char* op, const Convolution& c, const void* src, void* columns) {
  to_columns(op, c.dtype, Volume(c), src, columns, c.in_channels);
}
void convolution_from_columns(const char* op, const Convolution& c, const void* columns,
                              void* src) {
  from_columns(op, c.dtype, Volume(c), columns, src, c.in_channels);
}

}  // namespace lamella::native
