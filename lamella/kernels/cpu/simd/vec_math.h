// Primitives of the vector functions: bits of numbers, fused multiplication, selection, tables, and
// sums and products in twice the precision.
//
// Note [Functions in vectors]
//   A function is written once, for VecF and VecD of any width, and never splits a vector: if some
//   lane needs another method (a huge argument of sin, a negative one of lgamma), the method is
//   computed for the whole vector and selected lane by lane. Polynomials come from coefficients.h.
//   v_fma rounds once where the capability has the instruction (kHasFma) and twice elsewhere;
//   functions are accurate with either, so their last bits may differ between capabilities, but
//   never with the length of a run or the number of threads.
#pragma once
#include "lamella/kernels/cpu/simd/coefficients.h"
#include "lamella/kernels/cpu/simd/double_pieces.h"
#include "lamella/kernels/cpu/simd/float_pieces.h"
#include "lamella/kernels/cpu/simd/vec.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace lamella::native {
inline namespace CPU_CAPABILITY {

template <class V>
struct VecTraits;
template <>
struct VecTraits<VecI> {
  using T = int32_t;
};
template <>
struct VecTraits<VecL> {
  using T = int64_t;
};
template <>
struct VecTraits<VecF> {
  using T = float;
  using Int = VecI;
  using Bits = uint32_t;
  typedef uint32_t Unsigned __attribute__((vector_size(kVecBytes)));
  static constexpr int kMantissa = 23, kBias = 127;
};
template <>
struct VecTraits<VecD> {
  using T = double;
  using Int = VecL;
  using Bits = uint64_t;
  typedef uint64_t Unsigned __attribute__((vector_size(kVecBytes)));
  static constexpr int kMantissa = 52, kBias = 1023;
};
template <class V>
using IntOf = typename VecTraits<V>::Int;
template <class V>
using ElementOf = typename VecTraits<V>::T;
template <class V>
inline constexpr auto kSignBit = static_cast<ElementOf<IntOf<V>>>(
    typename VecTraits<V>::Bits(1) << (sizeof(ElementOf<V>) * 8 - 1));
template <class V>
inline constexpr int kLanesOf = sizeof(V) / sizeof(ElementOf<V>);

template <class T>
inline constexpr T kInf = __builtin_huge_val();
template <class T>
inline constexpr T kQuietNan = __builtin_nan("");

// ---- Operations that the compiler's vectors lack ----

#if defined(CPU_CAPABILITY_AVX512)
inline constexpr bool kHasFma = true;
inline VecF v_fma(VecF a, VecF b, VecF c) { return _mm512_fmadd_ps(a, b, c); }
inline VecD v_fma(VecD a, VecD b, VecD c) { return _mm512_fmadd_pd(a, b, c); }
inline VecF v_sqrt(VecF a) { return _mm512_maskz_sqrt_ps(0xffff, a); }
inline VecD v_sqrt(VecD a) { return _mm512_maskz_sqrt_pd(0xff, a); }
inline VecF v_at_most(VecF x, VecF bound) { return _mm512_maskz_min_ps(0xffff, bound, x); }
inline VecD v_at_most(VecD x, VecD bound) { return _mm512_maskz_min_pd(0xff, bound, x); }
inline VecF v_at_least(VecF x, VecF bound) { return _mm512_maskz_max_ps(0xffff, bound, x); }
inline VecD v_at_least(VecD x, VecD bound) { return _mm512_maskz_max_pd(0xff, bound, x); }
#elif defined(CPU_CAPABILITY_AVX2)
inline constexpr bool kHasFma = true;
inline VecF v_fma(VecF a, VecF b, VecF c) { return _mm256_fmadd_ps(a, b, c); }
inline VecD v_fma(VecD a, VecD b, VecD c) { return _mm256_fmadd_pd(a, b, c); }
inline VecF v_sqrt(VecF a) { return _mm256_sqrt_ps(a); }
inline VecD v_sqrt(VecD a) { return _mm256_sqrt_pd(a); }
inline VecF v_at_most(VecF x, VecF bound) { return _mm256_min_ps(bound, x); }
inline VecD v_at_most(VecD x, VecD bound) { return _mm256_min_pd(bound, x); }
inline VecF v_at_least(VecF x, VecF bound) { return _mm256_max_ps(bound, x); }
inline VecD v_at_least(VecD x, VecD bound) { return _mm256_max_pd(bound, x); }
#elif defined(__x86_64__)
inline constexpr bool kHasFma = false;
inline VecF v_fma(VecF a, VecF b, VecF c) { return a * b + c; }
inline VecD v_fma(VecD a, VecD b, VecD c) { return a * b + c; }
inline VecF v_sqrt(VecF a) { return _mm_sqrt_ps(a); }
inline VecD v_sqrt(VecD a) { return _mm_sqrt_pd(a); }
inline VecF v_at_most(VecF x, VecF bound) { return _mm_min_ps(bound, x); }
inline VecD v_at_most(VecD x, VecD bound) { return _mm_min_pd(bound, x); }
inline VecF v_at_least(VecF x, VecF bound) { return _mm_max_ps(bound, x); }
inline VecD v_at_least(VecD x, VecD bound) { return _mm_max_pd(bound, x); }
#elif defined(__aarch64__)
inline constexpr bool kHasFma = true;
inline VecF v_fma(VecF a, VecF b, VecF c) { return vfmaq_f32(c, a, b); }
inline VecD v_fma(VecD a, VecD b, VecD c) { return vfmaq_f64(c, a, b); }
inline VecF v_sqrt(VecF a) { return vsqrtq_f32(a); }
inline VecD v_sqrt(VecD a) { return vsqrtq_f64(a); }
inline VecF v_at_most(VecF x, VecF bound) { return vminq_f32(bound, x); }
inline VecD v_at_most(VecD x, VecD bound) { return vminq_f64(bound, x); }
inline VecF v_at_least(VecF x, VecF bound) { return vmaxq_f32(bound, x); }
inline VecD v_at_least(VecD x, VecD bound) { return vmaxq_f64(bound, x); }
#else
inline constexpr bool kHasFma = false;
inline VecF v_fma(VecF a, VecF b, VecF c) { return a * b + c; }
inline VecD v_fma(VecD a, VecD b, VecD c) { return a * b + c; }
template <class V>
inline V v_sqrt(V a) {
  for (int i = 0; i < kLanesOf<V>; ++i) a[i] = __builtin_sqrt(a[i]);
  return a;
}
template <class V>
inline V v_at_most(V x, V bound) {
  return x > bound ? bound : x;
}
template <class V>
inline V v_at_least(V x, V bound) {
  return x < bound ? bound : x;
}
#endif

// True if some lane of a comparison's result is set. Compilers differ in the integer type of such
// results, so the overload is chosen by the size of a lane.
template <class I>
inline bool v_any(I mask) {
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

// NaN stays in both.
template <class V>
inline V v_at_most(V x, ElementOf<V> bound) {
  return v_at_most(x, V{} + bound);
}
template <class V>
inline V v_at_least(V x, ElementOf<V> bound) {
  return v_at_least(x, V{} + bound);
}

template <class V>
inline V v_fma(V a, V b, ElementOf<V> c) {
  return v_fma(a, b, V{} + c);
}
template <class V>
inline V v_fma(V a, ElementOf<V> b, V c) {
  return v_fma(a, V{} + b, c);
}
template <class V>
inline V v_fma(V a, ElementOf<V> b, ElementOf<V> c) {
  return v_fma(a, V{} + b, V{} + c);
}

// ---- Bits ----

template <class V>
inline IntOf<V> v_bits(V x) {
  return reinterpret_cast<IntOf<V>>(x);
}
template <class V>
inline V v_from_bits(IntOf<V> bits) {
  return reinterpret_cast<V>(bits);
}

template <class V>
inline V v_abs(V x) {
  return v_from_bits<V>(v_bits(x) & ~kSignBit<V>);
}
// The sign bit of `x` alone.
template <class V>
inline IntOf<V> v_sign(V x) {
  return v_bits(x) & kSignBit<V>;
}
template <class V>
inline V v_flip(V x, IntOf<V> sign) {
  return v_from_bits<V>(v_bits(x) ^ sign);
}
template <class V>
inline V v_copysign(V size, V sign) {
  return v_from_bits<V>(v_bits(v_abs(size)) | v_sign(sign));
}
// Logical, whatever the sign.
template <class V>
inline IntOf<V> v_shift_right(IntOf<V> x, int by) {
  return reinterpret_cast<IntOf<V>>(reinterpret_cast<typename VecTraits<V>::Unsigned>(x) >> by);
}

// ---- Whole numbers and powers of two ----

// Adding and subtracting it rounds numbers below a quarter of it to the nearest whole number, ties
// to even; the lowest bits of the sum hold that number.
template <class T>
inline constexpr T kRounder = sizeof(T) == 4 ? T(12582912.0) : T(6755399441055744.0);

template <class V>
struct Rounded {
  V value;
  IntOf<V> whole;
};
template <class V>
inline Rounded<V> v_whole_of_shifted(V shifted) {
  using T = ElementOf<V>;
  return {shifted - kRounder<T>, v_bits(shifted) - v_bits(V{} + kRounder<T>)};
}
template <class V>
inline Rounded<V> v_round(V x) {
  return v_whole_of_shifted(x + kRounder<ElementOf<V>>);
}
// Of any size.
template <class V>
inline V v_rint(V x) {
  using T = ElementOf<V>;
  V size = v_abs(x);
  constexpr T kWhole = sizeof(T) == 4 ? T(8388608.0) : T(4503599627370496.0);
  return size < kWhole ? v_copysign((size + kWhole) - kWhole, x) : x;
}
template <class V>
inline V v_trunc(V x) {
  V size = v_abs(x), near = v_abs(v_rint(x));
  return v_copysign(near > size ? near - 1 : near, x);
}
template <class V>
inline V v_floor(V x) {
  V near = v_rint(x);
  return near > x ? near - 1 : near;
}

// 2^n of normal size.
template <class V>
inline V v_power_of_two(IntOf<V> n) {
  return v_from_bits<V>((n + VecTraits<V>::kBias) << VecTraits<V>::kMantissa);
}
// x 2^n, rounded once, for n within twice the range of exponents.
#if defined(CPU_CAPABILITY_AVX512)
inline VecF v_ldexp(VecF x, Rounded<VecF> n) { return _mm512_maskz_scalef_ps(0xffff, x, n.value); }
inline VecD v_ldexp(VecD x, Rounded<VecD> n) { return _mm512_maskz_scalef_pd(0xff, x, n.value); }
#else
template <class V>
inline V v_ldexp(V x, Rounded<V> n) {
  constexpr int kFar = 1 << 14;
  IntOf<V> half = v_shift_right<V>(n.whole + kFar, 1) - kFar / 2;
  return x * v_power_of_two<V>(half) * v_power_of_two<V>(n.whole - half);
}
#endif

// x = m 2^n with m in [3/4, 3/2), for positive finite x.
template <class V>
struct Parts {
  V mantissa, exponent;
};
// The same for every x: log(m) + n log(2) is NaN for x below 0, and infinite at 0 and infinity.
#if defined(CPU_CAPABILITY_AVX512)
inline Parts<VecF> v_frexp_of_log(VecF x) {
  VecF m = _mm512_maskz_getmant_ps(0xffff, x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
  return {m, _mm512_maskz_getexp_ps(0xffff, x) - _mm512_maskz_getexp_ps(0xffff, m)};
}
inline Parts<VecD> v_frexp_of_log(VecD x) {
  VecD m = _mm512_maskz_getmant_pd(0xff, x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
  return {m, _mm512_maskz_getexp_pd(0xff, x) - _mm512_maskz_getexp_pd(0xff, m)};
}
#else
template <class V>
inline Parts<V> v_frexp_of_log(V x) {
  using T = ElementOf<V>;
  using Traits = VecTraits<V>;
  constexpr T kNormal = sizeof(T) == 4 ? T(0x1p-126) : T(0x1p-1022);
  constexpr T kUp = sizeof(T) == 4 ? T(0x1p24) : T(0x1p54);
  auto tiny = x < kNormal;
  V scaled = tiny ? x * kUp : x;
  // From the bits of 3/4 on, the exponent counts in steps of 1; biased, it is never negative.
  constexpr int kMantissa = Traits::kMantissa;
  constexpr T kUnit = sizeof(T) == 4 ? T(0x1p23) : T(0x1p52);
  IntOf<V> base = v_bits(V{} + T(0.75)), bias = v_bits(V{} + 1);
  IntOf<V> n = v_shift_right<V>(v_bits(scaled) - base + bias, kMantissa);
  V m = v_from_bits<V>(v_bits(scaled) - (n << kMantissa) + bias);
  // As the last bits of a number of the size of kUnit it needs no conversion.
  V exponent = v_from_bits<V>(n | v_bits(V{} + kUnit)) - (kUnit + Traits::kBias);
  exponent = tiny ? exponent - T(sizeof(T) == 4 ? 24 : 54) : exponent;
  m = x > 0 ? m : V{} + kQuietNan<T>;
  m = x == 0 || x == kInf<T> ? V{} + 1 : m;
  exponent = x == 0 ? V{} - kInf<T> : x == kInf<T> ? x : exponent;
  return {m, exponent};
}
#endif

// ---- Polynomials and tables ----

// sum x^I + coefficient(I - 1) x^(I - 1) + ..., by Horner's rule.
template <int I, class V, class F>
inline V v_horner(V sum, V x, const F& coefficient) {
  if constexpr (I == 0) {
    return sum;
  } else {
    return v_horner<I - 1>(v_fma(sum, x, coefficient(I - 1)), x, coefficient);
  }
}
// c[0] + c[1] x + ...
template <class V, class T, size_t N>
inline V v_polynomial(V x, const T (&c)[N]) {
  return v_horner<N - 1>(V{} + c[N - 1], x, [&](int i) { return V{} + c[i]; });
}

// table[index[i]], for a table of 32 floats or 16 doubles.
#if defined(CPU_CAPABILITY_AVX512)
inline VecF v_lookup(const float* table, VecI index) {
  return _mm512_permutex2var_ps(_mm512_loadu_ps(table), reinterpret_cast<__m512i>(index),
                                _mm512_loadu_ps(table + 16));
}
inline VecD v_lookup(const double* table, VecL index) {
  return _mm512_permutex2var_pd(_mm512_loadu_pd(table), reinterpret_cast<__m512i>(index),
                                _mm512_loadu_pd(table + 8));
}
#elif defined(CPU_CAPABILITY_AVX2)
inline VecF v_lookup(const float* table, VecI index) {
  return _mm256_i32gather_ps(table, reinterpret_cast<__m256i>(index), 4);
}
inline VecD v_lookup(const double* table, VecL index) {
  return _mm256_i64gather_pd(table, reinterpret_cast<__m256i>(index), 8);
}
#else
inline VecF v_lookup(const float* table, VecI index) {
  VecF r;
  for (int i = 0; i < kLanesOf<VecF>; ++i) r[i] = table[index[i]];
  return r;
}
inline VecD v_lookup(const double* table, VecL index) {
  VecD r;
  for (int i = 0; i < kLanesOf<VecD>; ++i) r[i] = table[index[i]];
  return r;
}
#endif

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
template <class F>
inline VecF v_by_double(VecF x, const F& f) {
  Wide wide = v_widen(x);
  return v_narrow({f(wide.low), f(wide.high)});
}
template <class F>
inline VecF v_by_double(VecF x, VecF y, const F& f) {
  Wide a = v_widen(x), b = v_widen(y);
  return v_narrow({f(a.low, b.low), f(a.high, b.high)});
}

// ---- Twice the precision ----

// The unevaluated sum of two numbers (T. Dekker, A floating-point technique for extending the
// available precision, Numerische Mathematik 18, 1971).
template <class V>
struct Twice {
  V high, low;
};
// |a| >= |b|, or a is 0.
template <class V>
inline Twice<V> v_fast_sum(V a, V b) {
  V sum = a + b;
  return {sum, b - (sum - a)};
}
template <class V>
inline Twice<V> v_sum(V a, V b) {
  V sum = a + b, of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}
// The upper half of the bits of x.
template <class V>
inline V v_upper(V x) {
  constexpr int kDrop = sizeof(ElementOf<V>) == 4 ? 12 : 27;
  return v_from_bits<V>(v_bits(x) & ~(((IntOf<V>{} + 1) << kDrop) - 1));
}
// The sum of both, again in two parts.
template <class V>
inline Twice<V> v_add(Twice<V> a, V b) {
  Twice<V> sum = v_sum(a.high, b);
  return v_fast_sum(sum.high, sum.low + a.low);
}
// The rounding error of p = a b.
template <class V>
inline V v_product_error(V a, V b, V p) {
  if constexpr (kHasFma) {
    return v_fma(a, b, -p);
  } else {
    V ah = v_upper(a), bh = v_upper(b), al = a - ah, bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
  }
}
template <class V>
inline Twice<V> v_product(V a, V b) {
  V p = a * b;
  return {p, v_product_error(a, b, p)};
}

// ---- Functions in pieces ----

// The entry of x in the tables.
template <class V, class T, int N, bool R>
inline IntOf<V> v_piece_of(V x, const Piecewise<T, N, R>& p) {
  IntOf<V> at = v_shift_right<V>(v_bits(x), p.shift) - (p.first - 1);
  at = at < 0 ? IntOf<V>{} : at;
  return at > p.kEntries - 1 ? IntOf<V>{} + (p.kEntries - 1) : at;
}
// The function of a Piecewise at x + low, where `low` is about x's rounding error. NaN if x is NaN.
template <class V, class T, int N>
inline Twice<V> v_piecewise_twice(V x, const Piecewise<T, N>& p, V low) {
  IntOf<V> at = v_piece_of(x, p);
  V t = x - v_lookup(p.center, at) + low;
  V sum =
      v_horner<N - 2>(v_lookup(p.c[N - 1], at), t, [&](int i) { return v_lookup(p.c[i + 1], at); });
  return v_fast_sum(v_lookup(p.c[0], at), v_fma(sum, t, v_lookup(p.rest, at)));
}
// -0 as `low` changes no x, so that the compiler leaves it out.
template <class V, class T, int N>
inline Twice<V> v_piecewise_twice(V x, const Piecewise<T, N>& p) {
  return v_piecewise_twice(x, p, -V{});
}
template <class V, class T, int N>
inline V v_piecewise(V x, const Piecewise<T, N>& p) {
  return v_piecewise_twice(x, p).high;
}
template <class V, class T, int N>
inline V v_piecewise(V x, const Piecewise<T, N, false>& p) {
  IntOf<V> at = v_piece_of(x, p);
  V t = x - v_lookup(p.center, at);
  return v_horner<N - 1>(v_lookup(p.c[N - 1], at), t, [&](int i) { return v_lookup(p.c[i], at); });
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
