// LU of small matrices, systems and determinants.
#include "lamella/kernels/cpu/small_matrices.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "lamella/core/interrupt.h"

namespace lamella::native {

namespace {
// Calls f(n, T()) with a float or a double, and with n as a constant where loops of that size are
// worth code of their own.
template <class F>
void with_size(ScalarType dtype, int64_t n, const F& f) {
  auto with = [&](auto size) { dtype == kFloat ? f(size, float()) : f(size, double()); };
  if (n == 2) return with(std::integral_constant<int64_t, 2>());
  if (n == 3) return with(std::integral_constant<int64_t, 3>());
  if (n == 4) return with(std::integral_constant<int64_t, 4>());
  with(n);
}
template <class F>
void each_matrix(int64_t count, const F& f) {
  constexpr int64_t kUnchecked = 1024;
  for (int64_t begin = 0; begin < count; begin += kUnchecked) {
    check_interrupt();
    for (int64_t i = begin, end = std::min(count, begin + kUnchecked); i < end; ++i) f(i);
  }
}

template <class T, class Rows, class Columns>
[[gnu::always_inline]] inline int32_t factor(Rows m, Columns n, T* a, int32_t* pivots) {
  int32_t info = 0;
  for (int64_t j = 0; j < std::min<int64_t>(m, n); ++j) {
    T* column = a + j * m;
    // Without branches, which no processor would predict.
    int64_t p = j;
    T most = std::abs(column[j]);
    for (int64_t i = j + 1; i < m; ++i) {
      const T size = std::abs(column[i]);
      p = size > most ? i : p;
      most = size > most ? size : most;
    }
    pivots[j] = static_cast<int32_t>(p + 1);
    if (column[p] == 0) {
      if (info == 0) info = static_cast<int32_t>(j + 1);
      continue;
    }
    for (int64_t c = 0; c < n; ++c) std::swap(a[c * m + j], a[c * m + p]);
    for (int64_t i = j + 1; i < m; ++i) column[i] /= column[j];
    for (int64_t c = j + 1; c < n; ++c) {
      const T by = a[c * m + j];
      for (int64_t i = j + 1; i < m; ++i) a[c * m + i] -= column[i] * by;
    }
  }
  return info;
}

template <class T, class Size>
[[gnu::always_inline]] inline void solve(Size n, const T* a, const int32_t* pivots, T* b) {
  for (int64_t i = 0; i < n; ++i) std::swap(b[i], b[pivots[i] - 1]);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j + 1; i < n; ++i) b[i] -= a[j * n + i] * b[j];
  }
  for (int64_t j = n; j-- > 0;) {
    b[j] /= a[j * n + j];
    for (int64_t i = 0; i < j; ++i) b[i] -= a[j * n + i] * b[j];
  }
}
}  // namespace

void factor_small(ScalarType dtype, int64_t count, int64_t rows, int64_t columns, void* matrices,
                  int32_t* pivots, int32_t* info) {
  const int64_t steps = std::min(rows, columns);
  with_size(dtype, rows == columns ? rows : 0, [&](auto n, auto zero) {
    using T = decltype(zero);
    each_matrix(count, [&](int64_t i) {
      T* a = static_cast<T*>(matrices) + i * rows * columns;
      if constexpr (std::is_same_v<decltype(n), int64_t>) {
        info[i] = factor(rows, columns, a, pivots + i * steps);
      } else {
        info[i] = factor(n, n, a, pivots + i * n);
      }
    });
  });
}

void solve_small(ScalarType dtype, int64_t count, int64_t size, int64_t columns,
                 const void* factors, const int32_t* pivots, void* sides) {
  with_size(dtype, size, [&](auto n, auto zero) {
    using T = decltype(zero);
    each_matrix(count, [&](int64_t i) {
      T* b = static_cast<T*>(sides) + i * n * columns;
      for (int64_t c = 0; c < columns; ++c) {
        solve(n, static_cast<const T*>(factors) + i * n * n, pivots + i * n, b + c * n);
      }
    });
  });
}

void determinants_of_small(ScalarType dtype, int64_t count, int64_t size, const void* factors,
                           const int32_t* pivots, void* out) {
  with_size(dtype, size, [&](auto n, auto zero) {
    using T = decltype(zero);
    each_matrix(count, [&](int64_t i) {
      const T* a = static_cast<const T*>(factors) + i * n * n;
      T product = 1;
      bool odd = false;
      for (int64_t j = 0; j < n; ++j) {
        product *= a[j * (n + 1)];
        odd ^= pivots[i * n + j] != j + 1;
      }
      static_cast<T*>(out)[i] = odd ? -product : product;
    });
  });
}

}  // namespace lamella::native
