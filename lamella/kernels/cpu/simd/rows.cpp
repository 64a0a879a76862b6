// Normalisation of rows.
#include "lamella/kernels/cpu/simd/rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

constexpr int64_t kLanes = 32;

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
void norm_row(const T* x, T* y, const T* weight, const T* bias, int64_t n, double eps, T* mean_out,
              T* rstd_out);

// Normalises the row times a power of two, for rows whose squares overflow, or underflow beside a
// tiny eps. Returns false if that changes nothing, or the row has other than finite numbers.
template <class T>
LAMELLA_COLD bool norm_rescaled(const T* x, T* y, const T* weight, const T* bias, int64_t n,
                                double eps, T* mean_out, T* rstd_out) {
  using Limits = std::numeric_limits<T>;
  T top = 0;
  for (int64_t i = 0; i < n; ++i) {
    T size = std::abs(x[i]);
    if (!(size <= Limits::max())) return false;
    top = size > top ? size : top;
  }
  if (top == 0) return false;
  // The scale and its inverse are normal numbers.
  int exponent = std::max(std::ilogb(top), Limits::min_exponent);
  if (exponent == 0) return false;
  const T scale = std::ldexp(T(1), -exponent);
  double scaled_eps = eps * static_cast<double>(scale) * static_cast<double>(scale);
  if (eps > 0) scaled_eps = std::max(scaled_eps, static_cast<double>(Limits::min()));
  Buffer<T> scaled(n);
  for (int64_t i = 0; i < n; ++i) scaled.get()[i] = x[i] * scale;
  norm_row<T>(scaled.get(), y, weight, bias, n, scaled_eps, mean_out, rstd_out);
  if (mean_out != nullptr) *mean_out /= scale;
  *rstd_out *= scale;
  return true;
}

template <class T>
void norm_row(const T* x, T* y, const T* weight, const T* bias, int64_t n, double eps, T* mean_out,
              T* rstd_out) {
  using Limits = std::numeric_limits<T>;
  T mean = 0;
  if (mean_out != nullptr) {
    mean = sum_of<T>(n, [&](int64_t i) { return x[i]; }) / static_cast<T>(n);
    *mean_out = mean;
  }
  T square = sum_of<T>(n, [&](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
  constexpr T kSmall = Limits::min() / Limits::epsilon();
  bool is_out_of_range =
      !(square <= Limits::max()) ||
      (square < kSmall * static_cast<T>(n) && static_cast<T>(eps) * Limits::epsilon() < kSmall);
  if (is_out_of_range) [[unlikely]] {
    if (norm_rescaled(x, y, weight, bias, n, eps, mean_out, rstd_out)) return;
  }
  T rstd = T(1) / std::sqrt(square / static_cast<T>(n) + static_cast<T>(eps));
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
        norm_row<C>(from, to, weight, bias, n, rows.eps, mean_at, rstd + i);
      } else {
        C* line = buffer.get();
        for (int64_t j = 0; j < n; ++j) line[j] = static_cast<C>(from[j]);
        norm_row<C>(line, line, weight, bias, n, rows.eps, mean_at, rstd + i);
        for (int64_t j = 0; j < n; ++j) to[j] = static_cast<T>(line[j]);
      }
    }
  });
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(norm_on, &norm_kernel);

}  // namespace lamella::native
