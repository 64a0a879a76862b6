// Vectors of floats with the width of the CPU capability that the file is compiled for.
#pragma once
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "lamella/kernels/cpu/simd/vector_size.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace lanes {

constexpr int64_t kLanes = kVecBytes / 4;
typedef float Lanes __attribute__((vector_size(kVecBytes)));
typedef int32_t IntLanes __attribute__((vector_size(kVecBytes)));
typedef Lanes LanesInMemory __attribute__((aligned(4), may_alias));

inline Lanes load(const float* p) { return *reinterpret_cast<const LanesInMemory*>(p); }
inline void store(float* p, Lanes v) { *reinterpret_cast<LanesInMemory*>(p) = v; }
// Subtracting 0 changes nothing, not even the sign of 0, so the compiler only broadcasts x.
inline Lanes all(float x) { return x - Lanes{}; }
inline Lanes multiply_add(Lanes a, Lanes b, Lanes c) {
#if defined(CPU_CAPABILITY_AVX512)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(CPU_CAPABILITY_AVX2)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

}  // namespace lanes
}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
