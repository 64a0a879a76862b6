// Gradients of softmax and log_softmax.
#include <cmath>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/convert.h"
#include "lamella/kernels/cpu/simd/rows.h"
#include "lamella/kernels/cpu/simd/softmax_lines.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

constexpr int64_t kRun = 256;

// x[i] = exp(x[i])
template <class C>
void exp_run(C* x, int64_t n) {
  exp_line<C, true>(x, x, C(0), n);
}

template <class C>
void row(const C* g, const C* y, C* x, int64_t n, bool logarithm) {
  Granule<C> sums = fill<C>(0);
  each_granule<C>(n, [&](int64_t i, auto now) {
    Granule<C> term = load_some<C>(g + i, now, C(0));
    if (!logarithm) {
      Granule<C> other = load_some<C>(y + i, now, C(0));
      for (int p = 0; p < Granule<C>::kParts; ++p) term.part[p] *= other.part[p];
    }
    sums = join<Sum<C>>(sums, term);
  });
  C sum = join_lanes<Sum<C>>(sums);
  if (!logarithm) {
    for (int64_t i = 0; i < n; ++i) x[i] = y[i] * (g[i] - sum);
    return;
  }
  C line[kRun];
  for (int64_t i = 0; i < n; i += kRun) {
    int64_t now = kRun < n - i ? kRun : n - i;
    exp_line<C, true>(y + i, line, C(0), now);
    for (int64_t j = 0; j < now; ++j) x[i + j] = g[i + j] - line[j] * sum;
  }
}
// Small types are converted to float32 and back, a line at a time.
template <class T>
void rows(ScalarType dtype, const T* grad, const T* y, T* x, int64_t n, int64_t begin, int64_t end,
          bool logarithm) {
  using C = compute_type<T>;
  constexpr bool kSmall = !std::is_same_v<T, C>;
  LineBuffer<C> grad_line(kSmall ? n : 1), line(kSmall ? n : 1);
  ConvertFn widen = kSmall ? get_convert(dtype, kFloat) : nullptr;
  ConvertFn narrow = kSmall ? get_convert(kFloat, dtype) : nullptr;
  for (int64_t at = begin * n; at < end * n; at += n) {
    if constexpr (kSmall) {
      widen(grad + at, grad_line.get(), n);
      widen(y + at, line.get(), n);
      row<C>(grad_line.get(), line.get(), line.get(), n, logarithm);
      narrow(line.get(), x + at, n);
    } else {
      row<C>(grad + at, y + at, x + at, n, logarithm);
    }
  }
}

// Interleaved slices, of which a group of adjacent ones is processed at a time.
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
      rows<T>(dtype, g, from, to, size, begin, end, logarithm);
    } else {
      columns<T>(g, from, to, size, inner, begin, end, logarithm);
    }
  });
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(softmax_backward_on, &softmax_backward_kernel);

}  // namespace lamella::native
