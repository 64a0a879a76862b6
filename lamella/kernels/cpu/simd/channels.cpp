// Statistics and affine maps of channels.
#include "lamella/kernels/cpu/simd/channels.h"

#include <vector>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

template <class T>
struct Elements {
  typedef T Lanes __attribute__((vector_size(kVecBytes), aligned(sizeof(T)), may_alias));
  static constexpr int64_t kLanes = kVecBytes / sizeof(T);
  static Lanes load(const T* x) { return *reinterpret_cast<const Lanes*>(x); }
};

// The sum of term(load, 0), ..., term(load, n - 1), where load(p + i) reads one element or one
// vector. It adds short runs in the element type, and the sums of runs in double, in the order that
// vectors of 64 bytes give. Narrower registers keep that order, so that the result is the same on
// all machines.
template <class T, class F>
double sum_of(int64_t n, F&& term) {
  using E = Elements<T>;
  constexpr int64_t kRun = 2048, kLanes = 64 / sizeof(T), kEach = E::kLanes,
                    kParts = 64 / kVecBytes;
  auto one = [](const T* x) { return *x; };
  double sum = 0;
  if (n < kLanes) {
    double parts[4] = {};
    for (int64_t j = 0; j < n; ++j) parts[j % 4] += static_cast<double>(term(one, j));
    return (parts[0] + parts[1]) + (parts[2] + parts[3]);
  }
  for (int64_t at = 0; at < n; at += kRun) {
    int64_t end = at + kRun < n ? at + kRun : n, i = at;
    typename E::Lanes sums[4 * kParts] = {};
    for (; i + 4 * kLanes <= end; i += 4 * kLanes) {
      for (int64_t v = 0; v < 4 * kParts; ++v) sums[v] += term(E::load, i + v * kEach);
    }
    for (; i + kLanes <= end; i += kLanes) {
      for (int64_t v = 0; v < kParts; ++v) sums[v] += term(E::load, i + v * kEach);
    }
    T lanes[kLanes];
    double parts[4] = {};
    for (int64_t v = 0; v < kParts; ++v) {
      *reinterpret_cast<typename E::Lanes*>(lanes + v * kEach) =
          (sums[v] + sums[kParts + v]) + (sums[2 * kParts + v] + sums[3 * kParts + v]);
    }
    for (int64_t j = 0; j < end - i; ++j) lanes[j] += term(one, i + j);
    for (int64_t j = 0; j < kLanes; ++j) parts[j % 4] += static_cast<double>(lanes[j]);
    sum += (parts[0] + parts[1]) + (parts[2] + parts[3]);
  }
  return sum;
}

template <class T>
void moments(const Planes& p, const T* x, T* mean, T* var, int64_t begin, int64_t end) {
  auto count = static_cast<double>(p.outer * p.inner);
  if (p.inner == 1) {
    auto width = static_cast<size_t>(end - begin);
    std::vector<double> sums(width, 0.0), squares(width, 0.0);
    for (int64_t o = 0; o < p.outer; ++o) {
      const T* row = x + o * p.channels + begin;
      for (size_t c = 0; c < width; ++c) sums[c] += static_cast<double>(row[c]);
    }
    for (size_t c = 0; c < width; ++c) sums[c] /= count;
    for (int64_t o = 0; o < p.outer; ++o) {
      const T* row = x + o * p.channels + begin;
      for (size_t c = 0; c < width; ++c) {
        double d = static_cast<double>(row[c]) - sums[c];
        squares[c] += d * d;
      }
    }
    for (size_t c = 0; c < width; ++c) {
      mean[begin + static_cast<int64_t>(c)] = static_cast<T>(sums[c]);
      var[begin + static_cast<int64_t>(c)] = static_cast<T>(squares[c] / count);
    }
    return;
  }
  for (int64_t c = begin; c < end; ++c) {
    double sum = 0, square = 0;
    for (int64_t o = 0; o < p.outer; ++o) {
      const T* run = x + (o * p.channels + c) * p.inner;
      sum += sum_of<T>(p.inner, [&](auto load, int64_t i) { return load(run + i); });
    }
    T centre = static_cast<T>(sum / count);
    for (int64_t o = 0; o < p.outer; ++o) {
      const T* run = x + (o * p.channels + c) * p.inner;
      square += sum_of<T>(p.inner, [&](auto load, int64_t i) {
        auto d = load(run + i) - centre;
        return d * d;
      });
    }
    mean[c] = centre;
    var[c] = static_cast<T>(square / count);
  }
}

template <class T>
void sums(const Planes& p, const T* dy, const T* x, const T* mean, T* sum_out, T* dot_out,
          int64_t begin, int64_t end) {
  if (p.inner == 1) {
    auto width = static_cast<size_t>(end - begin);
    std::vector<double> sum(width, 0.0), dot(width, 0.0);
    const T* centre = mean + begin;
    for (int64_t o = 0; o < p.outer; ++o) {
      const T* g = dy + o * p.channels + begin;
      const T* row = x + o * p.channels + begin;
      for (size_t c = 0; c < width; ++c) {
        sum[c] += static_cast<double>(g[c]);
        dot[c] += static_cast<double>(g[c] * (row[c] - centre[c]));
      }
    }
    for (size_t c = 0; c < width; ++c) {
      sum_out[begin + static_cast<int64_t>(c)] = static_cast<T>(sum[c]);
      dot_out[begin + static_cast<int64_t>(c)] = static_cast<T>(dot[c]);
    }
    return;
  }
  for (int64_t c = begin; c < end; ++c) {
    double sum = 0, dot = 0;
    T centre = mean[c];
    for (int64_t o = 0; o < p.outer; ++o) {
      const T* g = dy + (o * p.channels + c) * p.inner;
      const T* run = x + (o * p.channels + c) * p.inner;
      sum += sum_of<T>(p.inner, [&](auto load, int64_t i) { return load(g + i); });
      dot += sum_of<T>(
          p.inner, [&](auto load, int64_t i) { return load(g + i) * (load(run + i) - centre); });
    }
    sum_out[c] = static_cast<T>(sum);
    dot_out[c] = static_cast<T>(dot);
  }
}

template <class T>
void affine(const Planes& p, const ChannelAffine& f, int64_t begin, int64_t end) {
  auto* x = static_cast<const T*>(f.x);
  auto* dy = static_cast<const T*>(f.dy);
  auto* out = static_cast<T*>(f.out);
  auto* a = static_cast<const T*>(f.a);
  auto* b = static_cast<const T*>(f.b);
  auto* k = static_cast<const T*>(f.k);
  if (p.inner == 1) {
    while (begin < end) {
      int64_t c = begin % p.channels;
      int64_t width = p.channels - c < end - begin ? p.channels - c : end - begin;
      if (dy != nullptr) {
#pragma GCC ivdep
        for (int64_t i = 0; i < width; ++i) {
          out[begin + i] = a[c + i] * dy[begin + i] + (b[c + i] * x[begin + i] + k[c + i]);
        }
      } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < width; ++i) out[begin + i] = b[c + i] * x[begin + i] + k[c + i];
      }
      begin += width;
    }
    return;
  }
  for (int64_t r = begin; r < end; ++r) {
    int64_t c = r % p.channels, n = p.inner;
    const T* from = x + r * n;
    T* to = out + r * n;
    T scale = b[c], shift = k[c];
    if (dy != nullptr) {
      const T* g = dy + r * n;
      T slope = a[c];
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) to[i] = slope * g[i] + (scale * from[i] + shift);
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) to[i] = scale * from[i] + shift;
    }
  }
}

template <class F>
void with_type(ScalarType dtype, F&& f) {
  if (dtype == kDouble) {
    f(TypeTag<double>());
  } else {
    f(TypeTag<float>());
  }
}
void moments_kernel(const Planes& p, const void* x, void* mean, void* var, int64_t begin,
                    int64_t end) {
  with_type(p.dtype, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    moments<T>(p, static_cast<const T*>(x), static_cast<T*>(mean), static_cast<T*>(var), begin,
               end);
  });
}
void sums_kernel(const Planes& p, const void* dy, const void* x, const void* mean, void* sum,
                 void* dot, int64_t begin, int64_t end) {
  with_type(p.dtype, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    sums<T>(p, static_cast<const T*>(dy), static_cast<const T*>(x), static_cast<const T*>(mean),
            static_cast<T*>(sum), static_cast<T*>(dot), begin, end);
  });
}
void affine_kernel(const Planes& p, const ChannelAffine& f, int64_t begin, int64_t end) {
  with_type(p.dtype, [&](auto tag) { affine<type_of<decltype(tag)>>(p, f, begin, end); });
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(channel_moments_on, &moments_kernel);
LAMELLA_REGISTER_KERNEL(channel_sums_on, &sums_kernel);
LAMELLA_REGISTER_KERNEL(channel_affine_on, &affine_kernel);

}  // namespace lamella::native
