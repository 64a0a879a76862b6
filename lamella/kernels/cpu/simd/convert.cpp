// Conversions of runs of elements, of any type to any other.
#include "lamella/kernels/cpu/convert.h"

#include <array>
#include <type_traits>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

template <class T>
inline constexpr bool is_small = lamella::detail::is_small_float_v<T>;

template <class To, class From>
inline To convert_one(const From& x) {
  if constexpr (is_complex_type_v<From>) {
    using Part = typename From::value_type;
    if constexpr (is_complex_type_v<To>) {
      using R = typename To::value_type;
      return To(static_cast<R>(x.real()), static_cast<R>(x.imag()));
    } else if constexpr (std::is_same_v<To, bool>) {
      return static_cast<bool>(x);
    } else {
      return convert_one<To, Part>(x.real());
    }
  } else if constexpr (is_complex_type_v<To>) {
    return To(static_cast<typename To::value_type>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_unsigned_v<To>) {
    // Converts through int64, so that negative numbers wrap.
    if constexpr (sizeof(To) == 8) {
      return x >= From(9223372036854775808.0) ? static_cast<To>(x)
                                              : static_cast<To>(static_cast<int64_t>(x));
    } else {
      return static_cast<To>(static_cast<int64_t>(x));
    }
  } else {
    return static_cast<To>(x);
  }
}

// Conversions between float32 and a small type.
template <class Small>
LAMELLA_NOINLINE void widen(const void* src, void* dst, int64_t n) {
  auto* a = static_cast<const Small*>(src);
  auto* out = static_cast<float*>(dst);
  int64_t i = 0;
  if constexpr (SmallVec<Small>::kIsFast) {
    for (; i + kSmallWidth <= n; i += kSmallWidth) {
      SmallAsFloats x = SmallVec<Small>::load(reinterpret_cast<const char*>(a + i));
      std::memcpy(out + i, &x, sizeof(x));
    }
  }
  for (; i < n; ++i) out[i] = static_cast<float>(a[i]);
}
template <class Small>
LAMELLA_NOINLINE void narrow(const void* src, void* dst, int64_t n) {
  auto* a = static_cast<const float*>(src);
  auto* out = static_cast<Small*>(dst);
  int64_t i = 0;
  if constexpr (SmallVec<Small>::kIsFast) {
    for (; i + kSmallWidth <= n; i += kSmallWidth) {
      SmallAsFloats x;
      std::memcpy(&x, a + i, sizeof(x));
      SmallVec<Small>::store(reinterpret_cast<char*>(out + i), x);
    }
  }
  for (; i < n; ++i) out[i] = Small(a[i]);
}

template <class From, class To>
LAMELLA_NOINLINE void convert_run(const void* src, void* dst, int64_t n);

// Converts a small type through float, in blocks that stay in the first-level cache.
template <class From, class To>
void convert_small(const void* src, void* dst, int64_t n) {
  constexpr int64_t kBlock = 512;
  alignas(64) float floats[kBlock];
  auto* a = static_cast<const From*>(src);
  auto* out = static_cast<To*>(dst);
  for (int64_t i = 0; i < n; i += kBlock) {
    int64_t now = kBlock < n - i ? kBlock : n - i;
    convert_run<From, float>(a + i, floats, now);
    convert_run<float, To>(floats, out + i, now);
  }
}

// Floating point to small unsigned integers: values that fit int32 are converted through it, which
// is faster than through int64.
template <class From, class To>
void convert_cut(const From* a, To* out, int64_t n) {
  constexpr int64_t kBlock = 1024;
  for (int64_t i = 0; i < n; i += kBlock, a += kBlock, out += kBlock) {
    int64_t now = kBlock < n - i ? kBlock : n - i;
    int far = 0;
    for (int64_t k = 0; k < now; ++k) {
      From size = a[k] < 0 ? -a[k] : a[k];
      far |= static_cast<int>(!(size < From(2147483648.0)));
    }
    if (far != 0) {
#pragma GCC ivdep
      for (int64_t k = 0; k < now; ++k) out[k] = convert_one<To, From>(a[k]);
    } else {
#pragma GCC ivdep
      for (int64_t k = 0; k < now; ++k) out[k] = static_cast<To>(static_cast<int32_t>(a[k]));
    }
  }
}

template <class From, class To>
void convert_run(const void* src, void* dst, int64_t n) {
  if constexpr (is_small<From> && std::is_same_v<To, float>) {
    widen<From>(src, dst, n);
  } else if constexpr (std::is_same_v<From, float> && is_small<To>) {
    narrow<To>(src, dst, n);
  } else if constexpr (is_small<From> || is_small<To>) {
    convert_small<From, To>(src, dst, n);
  } else if constexpr (std::is_floating_point_v<From> && std::is_unsigned_v<To> &&
                       !std::is_same_v<To, bool> && sizeof(To) <= 2) {
    convert_cut(static_cast<const From*>(src), static_cast<To*>(dst), n);
  } else if constexpr (std::is_same_v<From, bool> && std::is_arithmetic_v<To>) {
    auto* a = static_cast<const uint8_t*>(src);
    auto* out = static_cast<To*>(dst);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<To>(static_cast<int8_t>(a[i] != 0));
  } else {
    auto* a = static_cast<const Stored<From>*>(src);
    auto* out = static_cast<To*>(dst);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = convert_one<To, From>(a[i]);
  }
}

template <size_t From, size_t... To>
constexpr std::array<ConvertFn, kConvertTypes> conversions_from(std::index_sequence<To...>) {
  return {&convert_run<ScalarTypeToCppTypeT<kLoopOrder[From]>,
                       ScalarTypeToCppTypeT<kLoopOrder[To]>>...};
}
template <size_t... From>
constexpr ConversionTable all_conversions(std::index_sequence<From...>) {
  return {conversions_from<From>(std::make_index_sequence<kConvertTypes>())...};
}
const ConversionTable& conversions() {
  static constexpr ConversionTable table =
      all_conversions(std::make_index_sequence<kConvertTypes>());
  return table;
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(conversions_on, &conversions);

}  // namespace lamella::native
