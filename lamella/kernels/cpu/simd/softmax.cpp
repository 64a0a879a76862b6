// Softmax and its logarithm.
#include <cmath>

#include "lamella/kernels/cpu/convert.h"
#include "lamella/kernels/cpu/simd/rows.h"
#include "lamella/kernels/cpu/simd/softmax_lines.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

// x and y may be the same.
template <class C>
void softmax_row(const C* x, C* y, int64_t n, bool logarithm) {
  C most = fold<Ordered<C, true>>(x, n);
  if (logarithm) {
    C rest = std::log(exp_line<C, false>(x, nullptr, most, n));
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - most) - rest;
    return;
  }
  C scale = C(1) / exp_line<C, true>(x, y, most, n);
  for (int64_t i = 0; i < n; ++i) y[i] *= scale;
}

// Small types are converted to float32 and back, a line at a time.
template <class T>
void softmax_rows(ScalarType dtype, const T* x, T* y, int64_t n, int64_t begin, int64_t end,
                  bool logarithm) {
  using C = compute_type<T>;
  constexpr bool kSmall = !std::is_same_v<T, C>;
  LineBuffer<C> buffer(kSmall ? n : 1);
  ConvertFn widen = kSmall ? get_convert(dtype, kFloat) : nullptr;
  ConvertFn narrow = kSmall ? get_convert(kFloat, dtype) : nullptr;
  for (int64_t i = begin; i < end; ++i) {
    const T* from = x + i * n;
    T* to = y + i * n;
    if constexpr (kSmall) {
      C* line = buffer.get();
      widen(from, line, n);
      softmax_row<C>(line, line, n, logarithm);
      narrow(line, to, n);
    } else {
      softmax_row<C>(from, to, n, logarithm);
    }
  }
}

// Interleaved slices, of which a group of adjacent ones is processed at a time. Exponentials are
// stored in `y` if its type can hold them.
template <class T>
void softmax_columns(ScalarType dtype, const T* x, T* y, int64_t size, int64_t inner, int64_t begin,
                     int64_t end, bool logarithm) {
  using C = compute_type<T>;
  constexpr bool kSmall = !std::is_same_v<T, C>;
  constexpr int64_t kGroup = 2048;
  ConvertFn widen = kSmall ? get_convert(dtype, kFloat) : nullptr;
  ConvertFn narrow = kSmall ? get_convert(kFloat, dtype) : nullptr;
  C most[kGroup], sum[kGroup], line[kGroup];
  while (begin < end) {
    int64_t outer = begin / inner, column = begin % inner;
    int64_t width = inner - column;
    width = width < end - begin ? width : end - begin;
    width = width < kGroup ? width : kGroup;
    const T* from = x + outer * size * inner + column;
    T* to = y + outer * size * inner + column;
    auto row = [&](int64_t i) -> const C* {
      if constexpr (kSmall) {
        widen(from + i * inner, line, width);
        return line;
      } else {
        return from + i * inner;
      }
    };
    // exp(x - most) of row i, which is added to the sums or stored.
    auto exp_row = [&](const C* values, C* e) {
      each_granule<C>(width, [&](int64_t j, auto now) {
        Granule<C> g = exp_of<C>(
            minus<C>(load_some<C>(values + j, now, C(0)), load_some<C>(most + j, now, C(0))));
        store_some<C>(sum + j, join<Sum<C>>(load_some<C>(sum + j, now, C(0)), g), now);
        if (e != nullptr) store_some<C>(e + j, g, now);
      });
    };
    for (int64_t j = 0; j < width; ++j) {
      most[j] = Ordered<C, true>::kIdentity;
      sum[j] = 0;
    }
    for (int64_t i = 0; i < size; ++i) {
      const C* values = row(i);
      for (int64_t j = 0; j < width; ++j) most[j] = Ordered<C, true>::join(most[j], values[j]);
    }
    constexpr bool kKeeps = !kSmall;
    for (int64_t i = 0; i < size; ++i) {
      C* e = nullptr;
      if constexpr (kKeeps) e = logarithm ? nullptr : to + i * inner;
      exp_row(row(i), e);
    }
    for (int64_t j = 0; j < width; ++j) {
      sum[j] = logarithm ? std::log(sum[j]) : 1 / sum[j];
    }
    for (int64_t i = 0; i < size; ++i) {
      C result[kGroup];
      C* into = result;
      if constexpr (!kSmall) into = to + i * inner;
      if (logarithm) {
        const C* values = row(i);
        for (int64_t j = 0; j < width; ++j) into[j] = (values[j] - most[j]) - sum[j];
      } else if constexpr (kKeeps) {
        for (int64_t j = 0; j < width; ++j) into[j] *= sum[j];
      } else {
        const C* values = row(i);
        each_granule<C>(width, [&](int64_t j, auto now) {
          store_some<C>(into + j,
                        exp_of<C>(minus<C>(load_some<C>(values + j, now, C(0)),
                                           load_some<C>(most + j, now, C(0)))),
                        now);
        });
        for (int64_t j = 0; j < width; ++j) into[j] *= sum[j];
      }
      if constexpr (kSmall) narrow(result, to + i * inner, width);
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
      softmax_rows<T>(dtype, from, to, size, begin, end, logarithm);
    } else {
      softmax_columns<T>(dtype, from, to, size, inner, begin, end, logarithm);
    }
  });
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(softmax_on, &softmax_kernel);

}  // namespace lamella::native
