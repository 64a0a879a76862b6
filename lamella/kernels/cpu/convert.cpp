// Conversion and movement of runs of elements.
#include "lamella/kernels/cpu/convert.h"

#include <array>
#include <cstring>
#include <type_traits>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/movement.h"

namespace lamella::native {

LAMELLA_DEFINE_DISPATCH(fast_conversions_stub);

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
  } else if constexpr (is_small<From>) {
    return convert_one<To, float>(static_cast<float>(x));
  } else if constexpr (is_small<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_unsigned_v<To>) {
    // By way of int64, so that negative numbers wrap.
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

template <int From, int To>
void convert_run(const void* src, void* dst, int64_t n) {
  using F = ScalarTypeToCppTypeT<kLoopOrder[From]>;
  using T = ScalarTypeToCppTypeT<kLoopOrder[To]>;
  auto* a = static_cast<const Stored<F>*>(src);
  auto* out = static_cast<T*>(dst);
  for (int64_t i = 0; i < n; ++i) out[i] = convert_one<T, F>(a[i]);
}

// Pairs that fast_conversions_stub has for every capability.
template <class... T>
constexpr bool holds(int index, Types<T...>) {
  return ((loop_index(CppTypeToScalarType<T>::value) == index) || ...);
}
constexpr bool is_fast(int index) {
  return holds(index, FastTypes()) || index == loop_index(kHalf) || index == loop_index(kBFloat16);
}
template <int From, int To>
constexpr ConvertFn plain_conversion() {
  if constexpr (From != To && is_fast(From) && is_fast(To)) {
    return nullptr;
  } else {
    return &convert_run<From, To>;
  }
}

template <int From, size_t... To>
constexpr std::array<ConvertFn, kConvertTypes> conversions_from(std::index_sequence<To...>) {
  return {plain_conversion<From, static_cast<int>(To)>()...};
}
template <size_t... From>
constexpr std::array<std::array<ConvertFn, kConvertTypes>, kConvertTypes> all_conversions(
    std::index_sequence<From...>) {
  return {conversions_from<static_cast<int>(From)>(std::make_index_sequence<kConvertTypes>())...};
}
constexpr auto kConversions = all_conversions(std::make_index_sequence<kConvertTypes>());

using Table = std::array<std::array<ConvertFn, kConvertTypes>, kConvertTypes>;
Table make_table() {
  Table table = kConversions;
  const FastConversions& fast = fast_conversions_stub(kCPU);
  for (int from = 0; from < kConvertTypes; ++from) {
    for (int to = 0; to < kConvertTypes; ++to) {
      if (fast.of[from][to] != nullptr) table[from][to] = fast.of[from][to];
    }
  }
  return table;
}

}  // namespace

ConvertFn get_convert(ScalarType from, ScalarType to) {
  static const Table table = make_table();
  int f = loop_index(from), t = loop_index(to);
  LAMELLA_INTERNAL_ASSERT(f >= 0 && t >= 0);
  return table[static_cast<size_t>(f)][static_cast<size_t>(t)];
}

void move_elements(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t n,
                   int64_t bytes) {
  if (src_stride == bytes && dst_stride == bytes) {
    std::memcpy(dst, src, static_cast<size_t>(n * bytes));
    return;
  }
  movement_stub(kCPU, bytes)
      .plane({dst, {dst_stride, 0}}, {const_cast<char*>(src), {src_stride, 0}}, n, 1, false);
}

void fill_elements(const char* src, char* dst, int64_t n, int64_t bytes) {
  movement_stub(kCPU, bytes).fill(dst, src, n);
}

}  // namespace lamella::native
