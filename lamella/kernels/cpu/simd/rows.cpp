// Normalisation of rows.
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

LAMELLA_REGISTER_DISPATCH(norm_stub, &norm_kernel);

}  // namespace lamella::native
