// Products of vectors.
#include "lamella/kernels/cpu/simd/dot.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

template <class T>
T dot_of(const T* a, const T* b, int64_t n) {
  constexpr int kLanes = 32;
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) lanes[j] += a[i + j] * b[i + j];
  }
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  }
  T sum = lanes[0];
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void dot_kernel(ScalarType dtype, const void* a, const void* b, int64_t n, void* result) {
  if (dtype == kFloat) {
    *static_cast<float*>(result) =
        dot_of(static_cast<const float*>(a), static_cast<const float*>(b), n);
  } else {
    *static_cast<double*>(result) =
        dot_of(static_cast<const double*>(a), static_cast<const double*>(b), n);
  }
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(dot_on, &dot_kernel);

}  // namespace lamella::native
