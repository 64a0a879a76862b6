// The conversions that matter for speed.
#include "lamella/kernels/cpu/convert.h"
#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

template <class From, class To>
void convert(const void* src, void* dst, int64_t n) {
  auto* a = static_cast<const From*>(src);
  auto* out = static_cast<To*>(dst);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, uint8_t>) {
      out[i] = static_cast<To>(static_cast<int64_t>(a[i]));  // so that negative numbers wrap
    } else if constexpr (std::is_same_v<To, bool>) {
      out[i] = a[i] != From();
    } else {
      out[i] = static_cast<To>(a[i]);
    }
  }
}

// The bits of a float, which others read and write as what it is.
typedef uint32_t FloatBits __attribute__((may_alias));

void bfloat16_to_float(const void* src, void* dst, int64_t n) {
  auto* a = static_cast<const uint16_t*>(src);
  auto* out = static_cast<FloatBits*>(dst);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<uint32_t>(a[i]) << 16;
}
void float_to_bfloat16(const void* src, void* dst, int64_t n) {
  auto* a = static_cast<const FloatBits*>(src);
  auto* out = static_cast<uint16_t*>(dst);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    uint32_t word = a[i];
    uint32_t rounded = (word + 0x7fff + ((word >> 16) & 1)) >> 16;
    uint32_t nan = (word >> 16 & 0x8000) | 0x7fc0;
    out[i] = static_cast<uint16_t>((word & 0x7fffffff) > 0x7f800000 ? nan : rounded);
  }
}

void half_to_float(const void* src, void* dst, int64_t n) {
  auto* a = static_cast<const uint16_t*>(src);
  auto* out = static_cast<float*>(dst);
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a + i));
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(x));
  }
#endif
  for (; i < n; ++i) out[i] = Half(a[i], Half::from_bits());
}
void float_to_half(const void* src, void* dst, int64_t n) {
  auto* a = static_cast<const float*>(src);
  auto* out = static_cast<uint16_t*>(dst);
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    __m128i x = _mm256_cvtps_ph(_mm256_loadu_ps(a + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), x);
  }
#endif
  for (; i < n; ++i) out[i] = Half(a[i]).x;
}

// float16 and bfloat16 to and from other types, a piece at a time.
constexpr int64_t kPiece = 1024;
template <ConvertFn kToFloat, ConvertFn kFromFloat, int kFromBytes, int kToBytes>
void by_way_of_float(const void* src, void* dst, int64_t n) {
  alignas(64) float room[kPiece];
  float* piece = room;
  // The compiler would follow the numbers through both functions, and warn that a piece of none is
  // read without being written.
  asm("" : "+r"(piece) : : "memory");
  for (int64_t i = 0; i < n; i += kPiece) {
    int64_t now = n - i < kPiece ? n - i : kPiece;
    kToFloat(static_cast<const char*>(src) + i * kFromBytes, piece, now);
    kFromFloat(piece, static_cast<char*>(dst) + i * kToBytes, now);
  }
}

template <class From, class To>
constexpr ConvertFn conversion() {
  if constexpr (std::is_same_v<From, To>) {
    return nullptr;
  } else {
    return &convert<Stored<From>, To>;
  }
}

template <class From, class... To>
constexpr void add_conversions(FastConversions& table, Types<To...>) {
  constexpr int from = loop_index(CppTypeToScalarType<From>::value);
  ((table.of[from][loop_index(CppTypeToScalarType<To>::value)] = conversion<From, To>()), ...);
}
template <ConvertFn kToFloat, ConvertFn kFromFloat, class... T>
constexpr void add_small(FastConversions& table, ScalarType small, Types<T...>) {
  const int at = loop_index(small), through = loop_index(kFloat);
  auto add = [&]<class U>(std::type_identity<U>) {
    constexpr int other = loop_index(CppTypeToScalarType<U>::value);
    if constexpr (!std::is_same_v<U, float>) {
      table.of[at][other] = &by_way_of_float<kToFloat, conversion<float, U>(), 2, sizeof(U)>;
      table.of[other][at] = &by_way_of_float<conversion<U, float>(), kFromFloat, sizeof(U), 2>;
    }
  };
  (add(std::type_identity<T>()), ...);
  table.of[at][through] = kToFloat;
  table.of[through][at] = kFromFloat;
}
template <class... From>
constexpr FastConversions make_conversions(Types<From...>) {
  FastConversions table{};
  (add_conversions<From>(table, FastTypes()), ...);
  add_small<&half_to_float, &float_to_half>(table, kHalf, FastTypes());
  add_small<&bfloat16_to_float, &float_to_bfloat16>(table, kBFloat16, FastTypes());
  table.of[loop_index(kHalf)][loop_index(kBFloat16)] =
      &by_way_of_float<&half_to_float, &float_to_bfloat16, 2, 2>;
  table.of[loop_index(kBFloat16)][loop_index(kHalf)] =
      &by_way_of_float<&bfloat16_to_float, &float_to_half, 2, 2>;
  return table;
}

const FastConversions& fast_conversions() {
  static constexpr FastConversions table = make_conversions(FastTypes());
  return table;
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_DISPATCH(fast_conversions_stub, &fast_conversions);

}  // namespace lamella::native
