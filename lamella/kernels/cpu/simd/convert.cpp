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
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<To>(a[i]);
}

void bfloat16_to_float(const void* src, void* dst, int64_t n) {
  auto* a = static_cast<const uint16_t*>(src);
  auto* out = static_cast<uint32_t*>(dst);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<uint32_t>(a[i]) << 16;
}
void float_to_bfloat16(const void* src, void* dst, int64_t n) {
  auto* a = static_cast<const uint32_t*>(src);
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

const FastConversions& fast_conversions() {
  static constexpr FastConversions table = {&half_to_float,
                                            &float_to_half,
                                            &bfloat16_to_float,
                                            &float_to_bfloat16,
                                            &convert<float, double>,
                                            &convert<double, float>,
                                            &convert<int32_t, float>,
                                            &convert<int64_t, float>,
                                            &convert<int64_t, double>,
                                            &convert<uint8_t, float>,
                                            &convert<StoredBool, float>,
                                            &convert<float, int32_t>,
                                            nullptr};
  return table;
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_DISPATCH(fast_conversions_stub, &fast_conversions);

}  // namespace lamella::native
