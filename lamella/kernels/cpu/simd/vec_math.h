// Vectors of registers, as kinds of vectors for the functions: see Note [Kinds of vectors].
#pragma once
#include "lamella/kernels/cpu/simd/vec.h"
#include "lamella/kernels/cpu/simd/vector_kinds.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace registers {

#if defined(CPU_CAPABILITY_AVX512)
inline constexpr bool kHasFma = true;
inline VecF fma(VecF a, VecF b, VecF c) { return _mm512_fmadd_ps(a, b, c); }
inline VecD fma(VecD a, VecD b, VecD c) { return _mm512_fmadd_pd(a, b, c); }
inline VecF sqrt(VecF a) { return _mm512_maskz_sqrt_ps(0xffff, a); }
inline VecD sqrt(VecD a) { return _mm512_maskz_sqrt_pd(0xff, a); }
inline VecF at_most(VecF x, VecF bound) { return _mm512_maskz_min_ps(0xffff, bound, x); }
inline VecD at_most(VecD x, VecD bound) { return _mm512_maskz_min_pd(0xff, bound, x); }
inline VecF at_least(VecF x, VecF bound) { return _mm512_maskz_max_ps(0xffff, bound, x); }
inline VecD at_least(VecD x, VecD bound) { return _mm512_maskz_max_pd(0xff, bound, x); }
#elif defined(CPU_CAPABILITY_AVX2)
inline constexpr bool kHasFma = true;
inline VecF fma(VecF a, VecF b, VecF c) { return _mm256_fmadd_ps(a, b, c); }
inline VecD fma(VecD a, VecD b, VecD c) { return _mm256_fmadd_pd(a, b, c); }
inline VecF sqrt(VecF a) { return _mm256_sqrt_ps(a); }
inline VecD sqrt(VecD a) { return _mm256_sqrt_pd(a); }
inline VecF at_most(VecF x, VecF bound) { return _mm256_min_ps(bound, x); }
inline VecD at_most(VecD x, VecD bound) { return _mm256_min_pd(bound, x); }
inline VecF at_least(VecF x, VecF bound) { return _mm256_max_ps(bound, x); }
inline VecD at_least(VecD x, VecD bound) { return _mm256_max_pd(bound, x); }
#elif defined(__x86_64__)
inline constexpr bool kHasFma = false;
inline VecF fma(VecF a, VecF b, VecF c) { return a * b + c; }
inline VecD fma(VecD a, VecD b, VecD c) { return a * b + c; }
inline VecF sqrt(VecF a) { return _mm_sqrt_ps(a); }
inline VecD sqrt(VecD a) { return _mm_sqrt_pd(a); }
inline VecF at_most(VecF x, VecF bound) { return _mm_min_ps(bound, x); }
inline VecD at_most(VecD x, VecD bound) { return _mm_min_pd(bound, x); }
inline VecF at_least(VecF x, VecF bound) { return _mm_max_ps(bound, x); }
inline VecD at_least(VecD x, VecD bound) { return _mm_max_pd(bound, x); }
#elif defined(__aarch64__)
inline constexpr bool kHasFma = true;
inline VecF fma(VecF a, VecF b, VecF c) { return vfmaq_f32(c, a, b); }
inline VecD fma(VecD a, VecD b, VecD c) { return vfmaq_f64(c, a, b); }
inline VecF sqrt(VecF a) { return vsqrtq_f32(a); }
inline VecD sqrt(VecD a) { return vsqrtq_f64(a); }
inline VecF at_most(VecF x, VecF bound) { return vminq_f32(bound, x); }
inline VecD at_most(VecD x, VecD bound) { return vminq_f64(bound, x); }
inline VecF at_least(VecF x, VecF bound) { return vmaxq_f32(bound, x); }
inline VecD at_least(VecD x, VecD bound) { return vmaxq_f64(bound, x); }
#else
inline constexpr bool kHasFma = false;
inline VecF fma(VecF a, VecF b, VecF c) { return a * b + c; }
inline VecD fma(VecD a, VecD b, VecD c) { return a * b + c; }
template <class V>
inline V sqrt(V a) {
  for (size_t i = 0; i < sizeof(a) / sizeof(a[0]); ++i) a[i] = __builtin_sqrt(a[i]);
  return a;
}
template <class V>
inline V at_most(V x, V bound) {
  return x > bound ? bound : x;
}
template <class V>
inline V at_least(V x, V bound) {
  return x < bound ? bound : x;
}
#endif

// True if some lane of a comparison's result is set. Compilers differ in the integer type of such
// results, so the overload is chosen by the size of a lane.
template <class I>
inline bool any(I mask) {
  static_assert(sizeof(mask[0]) == 4 || sizeof(mask[0]) == 8);
#if defined(CPU_CAPABILITY_AVX512)
  auto lanes = reinterpret_cast<__m512i>(mask);
  if constexpr (sizeof(mask[0]) == 4) return _mm512_movepi32_mask(lanes) != 0;
  return _mm512_movepi64_mask(lanes) != 0;
#elif defined(CPU_CAPABILITY_AVX2)
  if constexpr (sizeof(mask[0]) == 4)
    return _mm256_movemask_ps(reinterpret_cast<__m256>(mask)) != 0;
  return _mm256_movemask_pd(reinterpret_cast<__m256d>(mask)) != 0;
#elif defined(__x86_64__)
  if constexpr (sizeof(mask[0]) == 4) return _mm_movemask_ps(reinterpret_cast<__m128>(mask)) != 0;
  return _mm_movemask_pd(reinterpret_cast<__m128d>(mask)) != 0;
#elif defined(__aarch64__)
  return vmaxvq_u32(reinterpret_cast<uint32x4_t>(mask)) != 0;
#else
  bool any = false;
  for (size_t i = 0; i < sizeof(I) / sizeof(mask[0]); ++i) any |= mask[i] != 0;
  return any;
#endif
}

#if defined(CPU_CAPABILITY_AVX512)
inline VecF scaled(VecF x, VecF n) { return _mm512_maskz_scalef_ps(0xffff, x, n); }
inline VecD scaled(VecD x, VecD n) { return _mm512_maskz_scalef_pd(0xff, x, n); }
inline Parts<VecF> frexp_of_log(VecF x) {
  VecF m = _mm512_maskz_getmant_ps(0xffff, x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
  return {m, _mm512_maskz_getexp_ps(0xffff, x) - _mm512_maskz_getexp_ps(0xffff, m)};
}
inline Parts<VecD> frexp_of_log(VecD x) {
  VecD m = _mm512_maskz_getmant_pd(0xff, x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
  return {m, _mm512_maskz_getexp_pd(0xff, x) - _mm512_maskz_getexp_pd(0xff, m)};
}
#endif

// table[index[i]], for a table of 32 floats or 16 doubles.
#if defined(CPU_CAPABILITY_AVX512)
inline VecF lookup(const float* table, VecI index) {
  return _mm512_permutex2var_ps(_mm512_loadu_ps(table), reinterpret_cast<__m512i>(index),
                                _mm512_loadu_ps(table + 16));
}
inline VecD lookup(const double* table, VecL index) {
  return _mm512_permutex2var_pd(_mm512_loadu_pd(table), reinterpret_cast<__m512i>(index),
                                _mm512_loadu_pd(table + 8));
}
#elif defined(CPU_CAPABILITY_AVX2)
// A shuffle of each eight floats and two choices take less than a gather.
inline __m256 lookup_floats(const float* table, __m256i place, __m256i second, __m256i third) {
  auto at = [&](int first) {
    return _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + first), place);
  };
  const __m256 odd = _mm256_castsi256_ps(second);
  return _mm256_blendv_ps(_mm256_blendv_ps(at(0), at(8), odd),
                          _mm256_blendv_ps(at(16), at(24), odd), _mm256_castsi256_ps(third));
}
inline VecF lookup(const float* table, VecI index) {
  auto at = reinterpret_cast<__m256i>(index);
  return lookup_floats(table, at, _mm256_slli_epi32(at, 28), _mm256_slli_epi32(at, 27));
}
inline VecD lookup(const double* table, VecL index) {
  auto at = reinterpret_cast<__m256i>(index);
  const __m256i twice = _mm256_shuffle_epi32(_mm256_add_epi64(at, at), 0xa0);  // in both halves
  const __m256i halves = _mm256_add_epi32(twice, _mm256_set1_epi64x(int64_t{1} << 32));
  const __m256 found = lookup_floats(reinterpret_cast<const float*>(table), halves,
                                     _mm256_slli_epi32(twice, 28), _mm256_slli_epi32(twice, 27));
  return reinterpret_cast<VecD>(found);
}
#else
inline VecF lookup(const float* table, VecI index) {
  VecF r;
  for (int i = 0; i < kVecBytes / 4; ++i) r[i] = table[index[i]];
  return r;
}
inline VecD lookup(const double* table, VecL index) {
  VecD r;
  for (int i = 0; i < kVecBytes / 8; ++i) r[i] = table[index[i]];
  return r;
}
#endif

}  // namespace registers

template <class V, class Element>
struct RegisterTraits {
  using T = Element;
  using Mask = decltype(V{} < V{});
  static V select(Mask mask, V a, V b) { return mask ? a : b; }
  static Mask complement(Mask mask) { return ~mask; }
};
template <>
struct VecTraits<VecI> : RegisterTraits<VecI, int32_t> {};
template <>
struct VecTraits<VecL> : RegisterTraits<VecL, int64_t> {};
template <class V, class Element, class Integers, class Unsigned>
struct FloatTraits : RegisterTraits<V, Element> {
  using typename RegisterTraits<V, Element>::Mask;
  using Int = Integers;
  static constexpr int kMantissa = sizeof(Element) == 4 ? 23 : 52;
  static constexpr int kBias = sizeof(Element) == 4 ? 127 : 1023;
  static constexpr bool kHasFma = registers::kHasFma;
  static V fma(V a, V b, V c) { return registers::fma(a, b, c); }
  static V sqrt(V x) { return registers::sqrt(x); }
  static V abs(V x) { return from_bits(bits(x) & ~kSignBit<V>); }
  static V copysign(V size, V sign) { return from_bits(bits(abs(size)) | v_sign(sign)); }
  static V at_most(V x, V bound) { return registers::at_most(x, bound); }
  static V at_least(V x, V bound) { return registers::at_least(x, bound); }
  static Int bits(V x) { return reinterpret_cast<Int>(x); }
  static V from_bits(Int bits) { return reinterpret_cast<V>(bits); }
  static Int shift_right(Int x, int by) {
    return reinterpret_cast<Int>(reinterpret_cast<Unsigned>(x) >> by);
  }
#if defined(CPU_CAPABILITY_AVX512)
  static constexpr bool looks_up() { return true; }
  static constexpr bool has_scaling() { return true; }
  static V ldexp(V x, Rounded<V> n) { return registers::scaled(x, n.value); }
  static Parts<V> frexp_of_log(V x) { return registers::frexp_of_log(x); }
#else
  static constexpr bool looks_up() { return false; }
  static constexpr bool has_scaling() { return false; }
  static V ldexp(V x, Rounded<V> n) { return v_ldexp_by_bits(x, n); }
  static Parts<V> frexp_of_log(V x) { return v_frexp_of_log_by_bits(x); }
#endif
  static Int entry(Int n, int first) {
    constexpr int kLast = 128 / sizeof(Element) - 1;
    Int at = n - first;
    at = at < 0 ? Int{} : at;
    return at > kLast ? Int{} + kLast : at;
  }
  static V lookup(const Element* table, Int entry) { return registers::lookup(table, entry); }
  static bool any(Mask mask) { return registers::any(mask); }
  template <class F>
  static void if_any(Mask mask, const F& way) {
    if (LAMELLA_UNLIKELY(any(mask))) way(mask);
  }
};

// ---- float32 in double precision ----

typedef float HalfF __attribute__((vector_size(kVecBytes / 2)));
typedef int32_t HalfI __attribute__((vector_size(kVecBytes / 2)));
struct Wide {
  VecD low, high;  // the first half of the lanes, and the second
};
template <class V, class H>
inline V v_join(H low, H high) {
  struct {
    H halves[2];
  } both = {{low, high}};
  return __builtin_bit_cast(V, both);
}
inline Wide v_widen(VecF x) {
  struct Halves {
    HalfF halves[2];
  };
  auto both = __builtin_bit_cast(Halves, x);
  return {__builtin_convertvector(both.halves[0], VecD),
          __builtin_convertvector(both.halves[1], VecD)};
}
inline VecF v_narrow(Wide x) {
  return v_join<VecF>(__builtin_convertvector(x.low, HalfF),
                      __builtin_convertvector(x.high, HalfF));
}
typedef uint32_t UnsignedI __attribute__((vector_size(kVecBytes)));
typedef uint64_t UnsignedL __attribute__((vector_size(kVecBytes)));
template <>
struct VecTraits<VecD> : FloatTraits<VecD, double, VecL, UnsignedL> {
  // table[index[i]], for any table.
  static VecD gather(const double* table, VecL index) {
    VecD r;
    for (int i = 0; i < kVecBytes / 8; ++i) r[i] = table[index[i]];
    return r;
  }
};
template <>
struct VecTraits<VecF> : FloatTraits<VecF, float, VecI, UnsignedI> {
  static Wide widen(VecF x) { return v_widen(x); }
  static VecF narrow(Wide x) { return v_narrow(x); }
  static VecI narrow(VecL low, VecL high) {
    return v_join<VecI>(__builtin_convertvector(low, HalfI), __builtin_convertvector(high, HalfI));
  }
};
template <class I>
inline bool v_any(I mask) {
  return registers::any(mask);
}
template <class V>
inline constexpr int kLanesOf = sizeof(V) / sizeof(ElementOf<V>);

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
