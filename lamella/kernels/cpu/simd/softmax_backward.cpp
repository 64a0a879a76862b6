// Gradients of softmax and log_softmax.
#include <cmath>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/simd/rows.h"
#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

constexpr int64_t kRun = 256;
constexpr int64_t kLanes = 16;

// x[i] = exp(x[i])
#if defined(__x86_64__)
inline VecF exp_of(VecF x) { return LAMELLA_SLEEF_F(exp, u10)(x); }
inline VecD exp_of(VecD x) { return LAMELLA_SLEEF_D(exp, u10)(x); }
template <class T>
void exp_run(T* x, int64_t n) {
  constexpr int64_t kWidth = sizeof(Vec<T>) / sizeof(T);
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) v_store<T>(x + i, exp_of(v_load<T>(x + i)));
  if (i < n) {
    T rest[kWidth] = {};
    size_t bytes = static_cast<size_t>(n - i) * sizeof(T);
    std::memcpy(rest, x + i, bytes);
    v_store<T>(rest, exp_of(v_load<T>(rest)));
    std::memcpy(x + i, rest, bytes);
  }
}
#else
template <class T>
void exp_run(T* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = std::exp(x[i]);
}
#endif

template <class T>
void rows(const T* grad, const T* y, T* x, int64_t n, int64_t begin, int64_t end, bool logarithm) {
  using C = compute_type<T>;
  for (int64_t row = begin; row < end; ++row) {
    const T* g = grad + row * n;
    const T* from = y + row * n;
    T* to = x + row * n;
    C lanes[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int64_t j = 0; j < kLanes; ++j) {
        C value = static_cast<C>(g[i + j]);
        lanes[j] += logarithm ? value : value * static_cast<C>(from[i + j]);
      }
    }
    C sum = 0;
    for (C lane : lanes) sum += lane;
    for (; i < n; ++i) {
      C value = static_cast<C>(g[i]);
      sum += logarithm ? value : value * static_cast<C>(from[i]);
    }
    if (!logarithm) {
      for (i = 0; i < n; ++i) {
        to[i] = static_cast<T>(static_cast<C>(from[i]) * (static_cast<C>(g[i]) - sum));
      }
      continue;
    }
    C line[kRun];
    for (i = 0; i < n; i += kRun) {
      int64_t now = kRun < n - i ? kRun : n - i;
      for (int64_t j = 0; j < now; ++j) line[j] = static_cast<C>(from[i + j]);
      exp_run<C>(line, now);
      for (int64_t j = 0; j < now; ++j) {
        to[i + j] = static_cast<T>(static_cast<C>(g[i + j]) - line[j] * sum);
      }
    }
  }
}

// Slices side by side: a group of neighbours at a time.
template <class T>
void columns(const T* grad, const T* y, T* x, int64_t size, int64_t inner, int64_t begin,
             int64_t end, bool logarithm) {
  using C = compute_type<T>;
  C sum[kRun], line[kRun];
  while (begin < end) {
    int64_t outer = begin / inner, column = begin % inner;
    int64_t width = inner - column;
    width = width < end - begin ? width : end - begin;
    width = width < kRun ? width : kRun;
    int64_t start = outer * size * inner + column;
    for (int64_t j = 0; j < width; ++j) sum[j] = 0;
    for (int64_t i = 0; i < size; ++i) {
      const T* g = grad + start + i * inner;
      const T* from = y + start + i * inner;
      for (int64_t j = 0; j < width; ++j) {
        C value = static_cast<C>(g[j]);
        sum[j] += logarithm ? value : value * static_cast<C>(from[j]);
      }
    }
    for (int64_t i = 0; i < size; ++i) {
      const T* g = grad + start + i * inner;
      const T* from = y + start + i * inner;
      T* to = x + start + i * inner;
      for (int64_t j = 0; j < width; ++j) line[j] = static_cast<C>(from[j]);
      if (logarithm) exp_run<C>(line, width);
      for (int64_t j = 0; j < width; ++j) {
        C value = static_cast<C>(g[j]);
        to[j] = static_cast<T>(logarithm ? value - line[j] * sum[j] : line[j] * (value - sum[j]));
      }
    }
    begin += width;
  }
}

void softmax_backward_kernel(ScalarType dtype, const void* grad, const void* y, void* x,
                             int64_t size, int64_t inner, int64_t begin, int64_t end,
                             bool logarithm) {
  visit_floating(dtype, "softmax", [&](auto tag) {
    using T = type_of<decltype(tag)>;
    auto* g = static_cast<const T*>(grad);
    auto* from = static_cast<const T*>(y);
    auto* to = static_cast<T*>(x);
    if (inner == 1) {
      rows<T>(g, from, to, size, begin, end, logarithm);
    } else {
      columns<T>(g, from, to, size, inner, begin, end, logarithm);
    }
  });
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_DISPATCH(softmax_backward_stub, &softmax_backward_kernel);

}  // namespace lamella::native
