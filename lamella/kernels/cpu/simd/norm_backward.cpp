// The backward of normalised rows.
#include "lamella/kernels/cpu/simd/norm_backward.h"

#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

constexpr int64_t kLanes = 32;  // two vectors, so that one hides the other's latency

template <class T>
T total(const T (&lanes)[kLanes]) {
  T sum = 0;
  for (T lane : lanes) sum += lane;
  return sum;
}

// Numbers whose cubes are well in the range of the type.
template <class T>
struct Range {
  static constexpr T least = sizeof(T) == 8 ? T(1e-90) : T(1e-10);
  static constexpr T most = sizeof(T) == 8 ? T(1e90) : T(1e10);
};

// The gradient of the input for one row; factor(i) is the weight of element i.
template <class T, class F>
void row_gradient(const T* dy, const T* x, T mean, T rstd, bool centred, T* dx, int64_t n,
                  F&& factor) {
  T plain[kLanes] = {}, with_x[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) {
      T g = dy[i + j] * factor(i + j);
      plain[j] += g;
      with_x[j] += g * (x[i + j] - mean);
    }
  }
  T sum = total(plain), dot = total(with_x);
  for (; i < n; ++i) {
    T g = dy[i] * factor(i);
    sum += g;
    dot += g * (x[i] - mean);
  }
  T count = static_cast<T>(n);
  // Where the cube of rstd leaves the range, the numbers are normalised before they are multiplied.
  if (rstd < Range<T>::least || rstd > Range<T>::most) [[unlikely]] {
    dot = 0;
    for (int64_t k = 0; k < n; ++k) dot += dy[k] * factor(k) * ((x[k] - mean) * rstd);
    for (int64_t k = 0; k < n; ++k) {
      T rest = (centred ? sum / count : T(0)) + (x[k] - mean) * rstd * (dot / count);
      dx[k] = rstd * (dy[k] * factor(k) - rest);
    }
    return;
  }
  T scale = -rstd * rstd * rstd * dot / count;
  T shift = (centred ? -rstd * sum / count : T(0)) - scale * mean;
#pragma GCC ivdep
  for (int64_t k = 0; k < n; ++k) dx[k] = rstd * dy[k] * factor(k) + (scale * x[k] + shift);
}

template <class T>
void rows_gradient(const NormBackward& p, int64_t begin, int64_t end) {
  int64_t n = p.size;
  auto* weight = static_cast<const T*>(p.weight);
  auto* dweight = static_cast<T*>(p.dweight);
  auto* dbias = static_cast<T*>(p.dbias);
  for (int64_t r = begin; r < end; ++r) {
    auto* dy = static_cast<const T*>(p.dy) + r * n;
    auto* x = static_cast<const T*>(p.x) + r * n;
    T mean = p.mean == nullptr ? T(0) : static_cast<const T*>(p.mean)[r];
    T rstd = static_cast<const T*>(p.rstd)[r];
    bool centred = p.mean != nullptr;
    if (p.dx != nullptr) {
      T* dx = static_cast<T*>(p.dx) + r * n;
      if (weight != nullptr) {
        row_gradient(dy, x, mean, rstd, centred, dx, n, [&](int64_t i) { return weight[i]; });
      } else {
        row_gradient(dy, x, mean, rstd, centred, dx, n, [](int64_t) { return T(1); });
      }
    }
    if (dweight != nullptr) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        dweight[i] += dy[i] * ((x[i] - mean) * rstd);
        dbias[i] += dy[i];
      }
    }
  }
}

void norm_backward_kernel(const NormBackward& rows, int64_t begin, int64_t end) {
  if (rows.dtype == kDouble) {
    rows_gradient<double>(rows, begin, end);
  } else {
    rows_gradient<float>(rows, begin, end);
  }
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(norm_backward_on, &norm_backward_kernel);

}  // namespace lamella::native
