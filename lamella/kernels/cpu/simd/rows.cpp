// Softmax and normalisation of rows.
#include "lamella/kernels/cpu/simd/rows.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

constexpr int64_t kLanes = 32;

// y[i] = exp(x[i] - shift), returns the sum. x and y may be the same.
#if defined(__x86_64__)
inline VecF exp_of(VecF x) { return LAMELLA_SLEEF_F(exp, u10)(x); }
inline VecD exp_of(VecD x) { return LAMELLA_SLEEF_D(exp, u10)(x); }

template <class T>
T exp_and_sum(const T* x, T* y, T shift, int64_t n) {
  constexpr int64_t kWidth = sizeof(Vec<T>) / sizeof(T);
  const Vec<T> by = v_set<T>(shift);
  Vec<T> sums = v_set<T>(0);
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    Vec<T> e = exp_of(v_load<T>(x + i) - by);
    sums += e;
    v_store<T>(y + i, e);
  }
  T parts[kWidth];
  v_store<T>(parts, sums);
  T sum = 0;
  for (T part : parts) sum += part;
  if (i < n) {
    T rest[kWidth] = {};
    std::memcpy(rest, x + i, static_cast<size_t>(n - i) * sizeof(T));
    v_store<T>(rest, exp_of(v_load<T>(rest) - by));
    for (int64_t j = 0; j < n - i; ++j) sum += rest[j];
    std::memcpy(y + i, rest, static_cast<size_t>(n - i) * sizeof(T));
  }
  return sum;
}
#else
template <class T>
T exp_and_sum(const T* x, T* y, T shift, int64_t n) {
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - shift);
  return sum;
}
#endif

template <class T>
T maximum(const T* x, int64_t n) {
  constexpr T kLeast = -std::numeric_limits<T>::infinity();
  T lanes[kLanes];
  for (T& lane : lanes) lane = kLeast;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
  }
  T most = kLeast;
  for (T lane : lanes) most = lane > most ? lane : most;
  for (; i < n; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

// scratch: n elements, may be y.
template <class T>
void softmax_row(const T* x, T* y, int64_t n, bool logarithm, T* scratch) {
  T most = maximum(x, n);
  if (logarithm) {
    T shift = most + std::log(exp_and_sum(x, scratch, most, n));
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] - shift;
    return;
  }
  T scale = T(1) / exp_and_sum(x, y, most, n);
  for (int64_t i = 0; i < n; ++i) y[i] *= scale;
}

// Scratch memory of one thread's call, on the stack while it is small.
template <class T>
class Buffer {
 public:
  explicit Buffer(int64_t n) : data_(n <= kInline ? inline_ : new T[static_cast<size_t>(n)]) {}
  ~Buffer() {
    if (data_ != inline_) delete[] data_;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* get() { return data_; }

 private:
  static constexpr int64_t kInline = 1024;
  T inline_[kInline];
  T* data_;
};

template <class T>
void softmax_rows(const T* x, T* y, int64_t n, int64_t begin, int64_t end, bool logarithm) {
  using C = compute_type<T>;
  Buffer<C> buffer(n);
  for (int64_t i = begin; i < end; ++i) {
    const T* from = x + i * n;
    T* to = y + i * n;
    if constexpr (std::is_same_v<T, C>) {
      softmax_row<C>(from, to, n, logarithm, logarithm ? buffer.get() : to);
    } else {
      Buffer<C> scratch(logarithm ? n : 1);
      for (int64_t j = 0; j < n; ++j) buffer.get()[j] = static_cast<C>(from[j]);
      softmax_row<C>(buffer.get(), buffer.get(), n, logarithm, scratch.get());
      for (int64_t j = 0; j < n; ++j) to[j] = static_cast<T>(buffer.get()[j]);
    }
  }
}

// Slices side by side: a group of neighbours at a time.
template <class T>
void softmax_columns(const T* x, T* y, int64_t size, int64_t inner, int64_t begin, int64_t end,
                     bool logarithm) {
  using C = compute_type<T>;
  constexpr int64_t kGroup = 64;
  C most[kGroup], sum[kGroup], line[kGroup];
  while (begin < end) {
    int64_t outer = begin / inner, column = begin % inner;
    int64_t width = inner - column;
    width = width < end - begin ? width : end - begin;
    width = width < kGroup ? width : kGroup;
    const T* from = x + outer * size * inner + column;
    T* to = y + outer * size * inner + column;
    for (int64_t j = 0; j < width; ++j) {
      most[j] = -std::numeric_limits<C>::infinity();
      sum[j] = 0;
    }
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < width; ++j) {
        C value = static_cast<C>(from[i * inner + j]);
        most[j] = value > most[j] ? value : most[j];
      }
    }
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < width; ++j) line[j] = static_cast<C>(from[i * inner + j]) - most[j];
      exp_and_sum<C>(line, line, C(0), width);
      for (int64_t j = 0; j < width; ++j) sum[j] += line[j];
    }
    for (int64_t j = 0; j < width; ++j) {
      sum[j] = logarithm ? most[j] + std::log(sum[j]) : 1 / sum[j];
    }
    for (int64_t i = 0; i < size; ++i) {
      if (logarithm) {
        for (int64_t j = 0; j < width; ++j) {
          to[i * inner + j] = static_cast<T>(static_cast<C>(from[i * inner + j]) - sum[j]);
        }
        continue;
      }
      for (int64_t j = 0; j < width; ++j) line[j] = static_cast<C>(from[i * inner + j]) - most[j];
      exp_and_sum<C>(line, line, C(0), width);
      for (int64_t j = 0; j < width; ++j) to[i * inner + j] = static_cast<T>(line[j] * sum[j]);
    }
    begin += width;
  }
}

void softmax_kernel(ScalarType dtype, const void* x, void* y, int64_t size, int64_t inner,
                    int64_t begin, int64_t end, bool logarithm) {
  visit_floating(dtype, "softmax", [&](auto tag) {
    using T = type_of<decltype(tag)>;
    auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(y);
    if (inner == 1) {
      softmax_rows<T>(from, to, size, begin, end, logarithm);
    } else {
      softmax_columns<T>(from, to, size, inner, begin, end, logarithm);
    }
  });
}

// ---- Normalisation ----

template <class T, class F>
T sum_of(int64_t n, F&& term) {
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) lanes[j] += term(i + j);
  }
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  }
  T sum = lanes[0];
  for (; i < n; ++i) sum += term(i);
  return sum;
}

template <class T>
void norm_row(const T* x, T* y, const T* weight, const T* bias, int64_t n, T eps, T* mean_out,
              T* rstd_out) {
  T mean = 0;
  if (mean_out != nullptr) {
    mean = sum_of<T>(n, [&](int64_t i) { return x[i]; }) / static_cast<T>(n);
    *mean_out = mean;
  }
  T square = sum_of<T>(n, [&](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
  T rstd = T(1) / std::sqrt(square / static_cast<T>(n) + eps);
  *rstd_out = rstd;
  T shift = -mean * rstd;
  if (weight != nullptr && bias != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] * rstd + shift) * weight[i] + bias[i];
  } else if (weight != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] * rstd + shift) * weight[i];
  } else if (bias != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] * rstd + shift) + bias[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * rstd + shift;
  }
}

void norm_kernel(const NormRows& rows, int64_t begin, int64_t end) {
  visit_floating(rows.dtype, "layer_norm", [&](auto tag) {
    using T = type_of<decltype(tag)>;
    using C = compute_type<T>;
    auto* weight = static_cast<const C*>(rows.weight);
    auto* bias = static_cast<const C*>(rows.bias);
    auto* mean = static_cast<C*>(rows.mean);
    auto* rstd = static_cast<C*>(rows.rstd);
    int64_t n = rows.size;
    Buffer<C> buffer(std::is_same_v<T, C> ? 1 : n);
    for (int64_t i = begin; i < end; ++i) {
      const T* from = static_cast<const T*>(rows.x) + i * n;
      T* to = static_cast<T*>(rows.y) + i * n;
      C* mean_at = mean != nullptr ? mean + i : nullptr;
      if constexpr (std::is_same_v<T, C>) {
        norm_row<C>(from, to, weight, bias, n, static_cast<C>(rows.eps), mean_at, rstd + i);
      } else {
        C* line = buffer.get();
        for (int64_t j = 0; j < n; ++j) line[j] = static_cast<C>(from[j]);
        norm_row<C>(line, line, weight, bias, n, static_cast<C>(rows.eps), mean_at, rstd + i);
        for (int64_t j = 0; j < n; ++j) to[j] = static_cast<T>(line[j]);
      }
    }
  });
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_DISPATCH(softmax_stub, &softmax_kernel);
LAMELLA_REGISTER_DISPATCH(norm_stub, &norm_kernel);

}  // namespace lamella::native
