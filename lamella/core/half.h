// Small floating-point types: Half, BFloat16, Float8_e4m3fn, Float8_e5m2. Stored as bits; computed
// in float; conversion rounds to nearest even.
// Formats: IEEE 754 binary16; bfloat16; OCP 8-bit Floating Point Specification 1.0.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include "lamella/core/macros.h"

namespace lamella {
namespace detail {

// What codes beside numbers a format has.
enum class FloatSpecials : uint8_t {
  Ieee,     // all-ones exponents are infinity and NaN
  Finite,   // the all-ones code is NaN
  OneZero,  // the code of -0 is NaN
  None,     // every code is a number
};

// How a format with a sign, `E` exponent bits and `M` mantissa bits is coded. Numbers beyond the
// largest become infinity; where there is none, NaN; where there is neither, the largest. Without a
// NaN the code of -0 stands for it, as in ml_dtypes.
template <class Bits, int E, int M, FloatSpecials S = FloatSpecials::Ieee,
          int Bias = (1 << (E - 1)) - 1>
struct FloatFormat {
  static constexpr int kBias = Bias;
  static constexpr uint32_t kMantissaMask = (1u << M) - 1;
  static constexpr uint32_t kSign = 1u << (E + M);
  static constexpr uint32_t kInfinity = ((1u << E) - 1) << M;  // of Ieee alone
  static constexpr uint32_t kNan = S == FloatSpecials::Ieee     ? kInfinity | (1u << (M - 1))
                                   : S == FloatSpecials::Finite ? kSign - 1
                                                                : kSign;
  static constexpr uint32_t kMax = S == FloatSpecials::Ieee     ? kInfinity - 1
                                   : S == FloatSpecials::Finite ? kNan - 1
                                                                : kSign - 1;
  static constexpr uint32_t kOverflow = S == FloatSpecials::Ieee   ? kInfinity
                                        : S == FloatSpecials::None ? kMax
                                                                   : kNan;

  static constexpr float decode(uint32_t bits) {
    uint32_t sign = (bits & kSign) << (31 - E - M);
    uint32_t magnitude = bits & (kSign - 1);
    uint32_t mantissa = bits & kMantissaMask;
    uint32_t out;
    if (S == FloatSpecials::OneZero && magnitude == 0 && sign != 0) {
      out = 0x7fc00000u;
    } else if (magnitude == mantissa && kBias < 127) {
      // 2^(1 - bias - M) for each unit of the mantissa; exact.
      float unit = __builtin_bit_cast(float, static_cast<uint32_t>(128 - kBias - M) << 23);
      out = __builtin_bit_cast(uint32_t, static_cast<float>(mantissa) * unit);
    } else if (S == FloatSpecials::Ieee     ? magnitude >= kInfinity
               : S == FloatSpecials::Finite ? magnitude == kNan
                                            : false) {
      out = 0x7f800000u | (mantissa << (23 - M));
    } else {
      out = (magnitude << (23 - M)) + (static_cast<uint32_t>(127 - kBias) << 23);
    }
    return __builtin_bit_cast(float, out | sign);
  }

  // Of a float or double, to the nearest, ties to the even code.
  template <class Float>
  static constexpr Bits encode(Float value) {
    constexpr bool kSingle = sizeof(Float) == 4;
    using Word = std::conditional_t<kSingle, uint32_t, uint64_t>;
    constexpr int kFromBias = kSingle ? 127 : 1023, kFromM = kSingle ? 23 : 52;
    constexpr Word kFromInfinity = Word{2 * kFromBias + 1} << kFromM;
    Word word = __builtin_bit_cast(Word, value);
    Word sign = (word >> (8 * sizeof(Float) - 1 - E - M)) & kSign;
    Word magnitude = word & ~(Word{1} << (8 * sizeof(Float) - 1));
    Word out;
    if (magnitude >= kFromInfinity) {
      out = magnitude > kFromInfinity ? kNan : kOverflow;
    } else if (kBias < kFromBias && magnitude < Word{kFromBias + 1 - kBias} << kFromM) {
      // Below the smallest normal number: the addition rounds at the unit of the subnormals.
      Word magic_bits = Word{kFromBias + 1 - kBias + kFromM - M} << kFromM;
      Float magic = __builtin_bit_cast(Float, magic_bits);
      Float shifted = __builtin_bit_cast(Float, magnitude) + magic;
      out = __builtin_bit_cast(Word, shifted) - magic_bits;
    } else {
      Word odd = (magnitude >> (kFromM - M)) & 1;
      Word rounded = magnitude + (Word{1} << (kFromM - 1 - M)) - 1 + odd;
      out = (rounded - (Word{kFromBias - kBias} << kFromM)) >> (kFromM - M);
      if (out > kMax) out = kOverflow;
    }
    if (S == FloatSpecials::OneZero && out == 0) return 0;
    return static_cast<Bits>(out | sign);
  }
};

struct SmallFloatTag {};

// The common part of the small types.
template <class Self, class Bits, int E, int M, FloatSpecials S>
struct SmallFloat : SmallFloatTag {
  using Format = FloatFormat<Bits, E, M, S>;
  using bits_type = Bits;
  struct from_bits_t {};
  static constexpr from_bits_t from_bits() { return {}; }

  Bits x;

  SmallFloat() = default;
  constexpr SmallFloat(Bits bits, from_bits_t) : x(bits) {}
  constexpr SmallFloat(float value) : x(Format::encode(value)) {}  // NOLINT: implicit as float is
  constexpr operator float() const { return Format::decode(x); }   // NOLINT

  constexpr bool isnan() const {
    uint32_t magnitude = x & (Format::kSign - 1);
    return S == FloatSpecials::Ieee ? magnitude > Format::kInfinity : magnitude == Format::kNan;
  }

  friend constexpr Self operator+(Self a, Self b) { return float(a) + float(b); }
  friend constexpr Self operator-(Self a, Self b) { return float(a) - float(b); }
  friend constexpr Self operator*(Self a, Self b) { return float(a) * float(b); }
  friend constexpr Self operator/(Self a, Self b) { return float(a) / float(b); }
  friend constexpr Self operator-(Self a) {
    return Self(static_cast<Bits>(a.x ^ Format::kSign), from_bits_t{});
  }
  friend constexpr Self& operator+=(Self& a, float b) { return a = Self(float(a) + b); }
  friend constexpr Self& operator-=(Self& a, float b) { return a = Self(float(a) - b); }
  friend constexpr Self& operator*=(Self& a, float b) { return a = Self(float(a) * b); }
  friend constexpr Self& operator/=(Self& a, float b) { return a = Self(float(a) / b); }
};

template <class T>
inline constexpr bool is_small_float_v = __is_base_of(SmallFloatTag, T);

// Mixed arithmetic: results are float or double with those types, the small type with integers.
template <class T>
concept Small = is_small_float_v<T>;
template <class T, class U>
using SmallMixed = std::conditional_t<has_fractions<U>, U, T>;
template <class U>
using SmallWork = std::conditional_t<has_fractions<U>, U, float>;
}  // namespace detail

#define LAMELLA_SMALL_MIXED(op)                                        \
  template <detail::Small T, detail::Arithmetic U>                     \
  constexpr detail::SmallMixed<T, U> operator op(T a, U b) {           \
    using R = detail::SmallWork<U>;                                    \
    return static_cast<detail::SmallMixed<T, U>>(R(float(a)) op R(b)); \
  }                                                                    \
  template <detail::Arithmetic U, detail::Small T>                     \
  constexpr detail::SmallMixed<T, U> operator op(U a, T b) {           \
    using R = detail::SmallWork<U>;                                    \
    return static_cast<detail::SmallMixed<T, U>>(R(a) op R(float(b))); \
  }
LAMELLA_SMALL_MIXED(+)
LAMELLA_SMALL_MIXED(-)
LAMELLA_SMALL_MIXED(*)
LAMELLA_SMALL_MIXED(/)
#undef LAMELLA_SMALL_MIXED

// In nvcc's sources a type converts to and from CUDA's of the same format. BFloat16 does
// explicitly: comparisons of __nv_bfloat16 would match its own ones as well.
#ifdef __CUDACC__
#define LAMELLA_CUDA_FLOAT(Name, Theirs, kind)                                              \
  kind __host__ __device__ Name(Theirs value) { x = __builtin_bit_cast(bits_type, value); } \
  kind __host__ __device__ operator Theirs() const { return __builtin_bit_cast(Theirs, x); }
#else
#define LAMELLA_CUDA_FLOAT(Name, Theirs, kind)
#endif
#define LAMELLA_SMALL_FLOAT(Name, Bits, E, M, Specials, ...)                            \
  struct Name : detail::SmallFloat<Name, Bits, E, M, detail::FloatSpecials::Specials> { \
    using Base = detail::SmallFloat<Name, Bits, E, M, detail::FloatSpecials::Specials>; \
    using Base::Base;                                                                   \
    Name() = default;                                                                   \
    __VA_ARGS__                                                                         \
  };                                                                                    \
  static_assert(sizeof(Name) == sizeof(Bits) && __is_trivial(Name));
LAMELLA_SMALL_FLOAT(Half, uint16_t, 5, 10, Ieee, LAMELLA_CUDA_FLOAT(Half, __half, ))
LAMELLA_SMALL_FLOAT(BFloat16, uint16_t, 8, 7, Ieee,
                    LAMELLA_CUDA_FLOAT(BFloat16, __nv_bfloat16, explicit))
LAMELLA_SMALL_FLOAT(Float8_e4m3fn, uint8_t, 4, 3, Finite)
LAMELLA_SMALL_FLOAT(Float8_e5m2, uint8_t, 5, 2, Ieee)
#undef LAMELLA_SMALL_FLOAT
#undef LAMELLA_CUDA_FLOAT
#ifdef __CUDACC__
__device__ inline Half __ldg(const Half* from) {
  return ::__ldg(reinterpret_cast<const __half*>(from));
}
__device__ inline BFloat16 __ldg(const BFloat16* from) {
  return BFloat16(::__ldg(reinterpret_cast<const __nv_bfloat16*>(from)));
}
#endif

namespace detail {
// The number of decimal digits in `bits` binary ones, cut off.
inline constexpr int decimal_digits(int bits) { return bits * 30103 / 100000; }
template <class T>
struct SmallLimits {
  using Format = typename T::Format;
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = Format::kOverflow == Format::kInfinity;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = true;
  static constexpr std::float_denorm_style has_denorm = std::denorm_present;
  static constexpr bool has_denorm_loss = false;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr bool is_iec559 = false;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr int digits = __builtin_popcount(Format::kMantissaMask) + 1;
  static constexpr int digits10 = decimal_digits(digits - 1);
  static constexpr int max_digits10 = decimal_digits(digits) + 2;
  static constexpr int radix = 2;
  static constexpr int min_exponent = 2 - Format::kBias;
  static constexpr int min_exponent10 = decimal_digits(min_exponent - 1);
  static constexpr int max_exponent = Format::kBias + (has_infinity ? 1 : 2);
  static constexpr int max_exponent10 = decimal_digits(max_exponent);
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;
  static constexpr T of(uint32_t bits) {
    return T(static_cast<typename T::bits_type>(bits), T::from_bits());
  }
  static constexpr T min() { return of(Format::kMantissaMask + 1); }
  static constexpr T max() { return of(Format::kMax); }
  static constexpr T lowest() { return of(Format::kMax | Format::kSign); }
  static constexpr T epsilon() {
    return T(__builtin_bit_cast(float, static_cast<uint32_t>(128 - digits) << 23));
  }
  static constexpr T round_error() { return T(0.5f); }
  static constexpr T infinity() { return of(has_infinity ? Format::kInfinity : Format::kNan); }
  static constexpr T quiet_NaN() { return of(Format::kNan); }
  static constexpr T signaling_NaN() { return quiet_NaN(); }
  static constexpr T denorm_min() { return of(1); }
};
}  // namespace detail
}  // namespace lamella

template <lamella::detail::Small T>
class std::numeric_limits<T> : public lamella::detail::SmallLimits<T> {};
