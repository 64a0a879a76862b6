// Loops over float16 and bfloat16: each vector is converted to floats, computed with, and rounded
// back before the next one is read, so intermediate values stay in registers.
#pragma once
#include <cstring>
#include <type_traits>

#include "lamella/core/half.h"
#include "lamella/kernels/cpu/loops.h"
#include "lamella/kernels/cpu/simd/vector_size.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace lamella::native {
inline namespace CPU_CAPABILITY {

inline constexpr int kSmallWidth = kVecBytes / 4;
typedef float SmallAsFloats __attribute__((vector_size(4 * kSmallWidth)));
typedef uint32_t SmallAsWords __attribute__((vector_size(4 * kSmallWidth)));

// The lanes that are NaN, which alone differs from itself.
template <class V>
inline auto v_is_nan(V x) {
  return x != x;  // NOLINT(misc-redundant-expression)
}

// Loads and stores of kSmallWidth small numbers as a vector of floats.
template <class Small>
struct SmallVec {
  static constexpr bool kIsFast = false;
};
template <>
struct SmallVec<BFloat16> {
  static constexpr bool kIsFast = true;
  static SmallAsFloats load(const char* p) {
    return reinterpret_cast<SmallAsFloats>(widen(p) << 16);
  }
  // Rounds to nearest, ties to even; NaN keeps its sign.
  static void store(char* p, SmallAsFloats x) {
    auto word = reinterpret_cast<SmallAsWords>(x);
    SmallAsWords rounded = word + 0x7fff + ((word >> 16) & 1);
    SmallAsWords nan = (word & 0x80000000) | 0x7fc00000;
    narrow(p, (v_is_nan(x) ? nan : rounded) >> 16);
  }
  // Stores numbers that the type represents exactly.
  static void store_exact(char* p, SmallAsFloats x) {
    narrow(p, reinterpret_cast<SmallAsWords>(x) >> 16);
  }

 private:
  // The compiler's own conversion of vectors takes twice as many instructions on x86. The forms
  // with a mask of ones are the same instructions: those without one make GCC warn.
#if defined(CPU_CAPABILITY_AVX512)
  static SmallAsWords widen(const char* p) {
    return reinterpret_cast<SmallAsWords>(_mm512_maskz_cvtepu16_epi32(
        0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
  }
  static void narrow(char* p, SmallAsWords words) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_maskz_cvtepi32_epi16(0xffff, reinterpret_cast<__m512i>(words)));
  }
#elif defined(CPU_CAPABILITY_AVX2)
  static SmallAsWords widen(const char* p) {
    return reinterpret_cast<SmallAsWords>(
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static void narrow(char* p, SmallAsWords words) {
    auto both = reinterpret_cast<__m256i>(words);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(p),
        _mm_packus_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1)));
  }
#else
  typedef uint16_t Memory __attribute__((vector_size(2 * kSmallWidth), aligned(2), may_alias));
  static SmallAsWords widen(const char* p) {
    return __builtin_convertvector(*reinterpret_cast<const Memory*>(p), SmallAsWords);
  }
  static void narrow(char* p, SmallAsWords words) {
    *reinterpret_cast<Memory*>(p) = __builtin_convertvector(words, Memory);
  }
#endif
};
#if defined(__F16C__)
template <>
struct SmallVec<Half> {
  static constexpr bool kIsFast = true;
#if defined(CPU_CAPABILITY_AVX512)
  static SmallAsFloats load(const char* p) {
    return _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static void store(char* p, SmallAsFloats x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_maskz_cvtps_ph(0xffff, x, _MM_FROUND_TO_NEAREST_INT));
  }
#else
  static SmallAsFloats load(const char* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static void store(char* p, SmallAsFloats x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
#endif
};
#endif

// True if an operator's result is always one of its operands, or one with another sign: such a
// result needs no rounding.
template <class Op>
inline constexpr bool kResultIsExact = false;

template <class Op, class Small, int N, int Number>
void small_loop_of(char* const* data, int64_t n, const void* params) {
  constexpr int64_t kWidth = kSmallWidth;
  const Op op(params);
  auto apply = [&](const auto& x, int64_t j) {
    if constexpr (N == 1) {
      return op(x[0][j]);
    } else if constexpr (N == 2) {
      return op(x[0][j], x[1][j]);
    } else {
      return op(x[0][j], x[1][j], x[2][j]);
    }
  };
  using Floats = float[N][kWidth];
  using Result = decltype(apply(std::declval<Floats&>(), 0));
  constexpr bool is_bool = std::is_same_v<Result, bool>;
  float number = 0;
  if constexpr (Number > 0) number = *reinterpret_cast<const float*>(data[Number]);
  auto step = [&](const char* const* from, char* to) {
    alignas(64) Floats x;
    for (int k = 0; k < N; ++k) {
      auto loaded = k + 1 == Number ? SmallAsFloats{} + number : SmallVec<Small>::load(from[k]);
      std::memcpy(x[k], &loaded, sizeof(loaded));
    }
    alignas(64) Result result[kWidth];
    for (int64_t j = 0; j < kWidth; ++j) result[j] = apply(x, j);
    if constexpr (is_bool) {
      std::memcpy(to, result, sizeof(result));
    } else {
      SmallAsFloats floats;
      std::memcpy(&floats, result, sizeof(floats));
      // A float among the operands (Number >= 0) may have more digits than the small type.
      if constexpr (kResultIsExact<Op> && Number < 0 && std::is_same_v<Small, BFloat16>) {
        SmallVec<Small>::store_exact(to, floats);
      } else {
        SmallVec<Small>::store(to, floats);
      }
    }
  };
  constexpr int64_t kOutBytes = is_bool ? 1 : 2;
  const char* from[N];
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    for (int k = 0; k < N; ++k) from[k] = data[k + 1] + i * 2;
    step(from, data[0] + i * kOutBytes);
  }
  if (i < n) {
    auto left = static_cast<size_t>(n - i);
    char in[N][kWidth * 2] = {}, out[kWidth * 2];
    for (int k = 0; k < N; ++k) {
      if (k + 1 != Number) std::memcpy(in[k], data[k + 1] + i * 2, left * 2);
      from[k] = in[k];
    }
    step(from, out);
    std::memcpy(data[0] + i * kOutBytes, out, left * kOutBytes);
  }
}
template <class Op, class Small, int N>
void small_loop(char* const* data, int64_t n, const void* params, int number) {
  if constexpr (N == 2) {
    if (number == 1) return small_loop_of<Op, Small, N, 1>(data, n, params);
    if (number == 2) return small_loop_of<Op, Small, N, 2>(data, n, params);
  }
  small_loop_of<Op, Small, N, -1>(data, n, params);
}

// The loops over small types of an operator on floats. Files that are compiled once for every
// processor have none: conversion in the driver is faster there.
template <class Op, int N, class Small>
constexpr NumberLoopFn small_loop_for() {
#if defined(CPU_CAPABILITY_DEFAULT) || defined(CPU_CAPABILITY_AVX2) || \
    defined(CPU_CAPABILITY_AVX512)
  if constexpr (SmallVec<Small>::kIsFast) return &small_loop<Op, Small, N>;
#endif
  return nullptr;
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
