// Functions of warps: WARP_SHFL and its siblings.
#pragma once
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>
#include <cuda_runtime.h>

// Values of 2 bytes travel as bits, complex numbers by parts.
#define LAMELLA_WARP_FUNCTION(name, intrinsic, Lane)                                        \
  template <class T>                                                                        \
  __device__ inline T name(T value, Lane lane, int width = warpSize, unsigned mask = ~0u) { \
    if constexpr (requires { value.imag(); }) {                                             \
      return T(intrinsic(mask, value.real(), lane, width),                                  \
               intrinsic(mask, value.imag(), lane, width));                                 \
    } else if constexpr (sizeof(T) < 4) {                                                   \
      using Bits = std::conditional_t<sizeof(T) == 1, uint8_t, uint16_t>;                   \
      const unsigned bits = __builtin_bit_cast(Bits, value);                                \
      return __builtin_bit_cast(T, static_cast<Bits>(intrinsic(mask, bits, lane, width)));  \
    } else {                                                                                \
      return intrinsic(mask, value, lane, width);                                           \
    }                                                                                       \
  }
LAMELLA_WARP_FUNCTION(WARP_SHFL, __shfl_sync, int)
LAMELLA_WARP_FUNCTION(WARP_SHFL_XOR, __shfl_xor_sync, int)
LAMELLA_WARP_FUNCTION(WARP_SHFL_UP, __shfl_up_sync, unsigned)
LAMELLA_WARP_FUNCTION(WARP_SHFL_DOWN, __shfl_down_sync, unsigned)
#undef LAMELLA_WARP_FUNCTION

__device__ inline unsigned ACTIVE_MASK() { return __activemask(); }
__device__ inline void WARP_SYNC(unsigned mask = ~0u) { __syncwarp(mask); }
__device__ inline unsigned WARP_BALLOT(int predicate, unsigned mask = ~0u) {
  return __ballot_sync(mask, predicate);
}
template <class T>
__device__ inline T doLdg(const T* address) {
  return __ldg(address);
}
