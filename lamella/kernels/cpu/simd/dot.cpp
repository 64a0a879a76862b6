// Products of vectors.
#include "lamella/kernels/cpu/simd/dot.h"

#include <cstring>
#include <type_traits>

#include "lamella/kernels/cpu/simd/vector_size.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

template <class T>
T dot_of(const T* a, const T* b, int64_t n) {
  constexpr int kLanes = 32, kEach = kVecBytes / sizeof(T), kVectors = kLanes / kEach;
  typedef T Vector __attribute__((vector_size(kVecBytes)));
  typedef T Memory __attribute__((vector_size(kVecBytes), aligned(sizeof(T)), may_alias));
  Vector sums[kVectors] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      sums[v] += *reinterpret_cast<const Memory*>(a + i + v * kEach) *
                 *reinterpret_cast<const Memory*>(b + i + v * kEach);
    }
  }
  T lanes[kLanes];
  std::memcpy(lanes, sums, sizeof(lanes));
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  }
  T sum = lanes[0];
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void dot_kernel(ScalarType dtype, const void* a, const void* b, int64_t n, void* result) {
  auto run = [&]<class T>(std::type_identity<T>) {
    *static_cast<T*>(result) = dot_of(static_cast<const T*>(a), static_cast<const T*>(b), n);
  };
  switch (dtype) {
    case kFloat:
      return run(std::type_identity<float>());
    case kDouble:
      return run(std::type_identity<double>());
    case kInt:
      return run(std::type_identity<uint32_t>());
    default:
      return run(std::type_identity<uint64_t>());
  }
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(dot_on, &dot_kernel);

}  // namespace lamella::native
