// c10::detail::bits_from_f32 and its kin, and nextafter of bfloat16.
#pragma once
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace c10::detail {
inline float f32_from_bits(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
// The upper half of the bits.
inline uint16_t bits_from_f32(float value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
}
inline uint16_t round_to_nearest_even(float value) {
  return std::bit_cast<uint16_t>(c10::BFloat16(value));
}
}  // namespace c10::detail

namespace std {
template <class T>
inline constexpr bool is_reduced_floating_point_v =
    is_same_v<T, c10::BFloat16> || is_same_v<T, c10::Half>;
template <class T>
struct is_reduced_floating_point : bool_constant<is_reduced_floating_point_v<T>> {};
// The next number of bfloat16 after `from` in the direction of `to`.
inline c10::BFloat16 nextafter(c10::BFloat16 from, c10::BFloat16 to) {
  const float a = from, b = to;
  if (!(a < b) && !(a > b)) return a == b ? to : c10::BFloat16(a + b);
  const auto bits = bit_cast<uint16_t>(from);
  if (a == 0) return bit_cast<c10::BFloat16>(static_cast<uint16_t>(signbit(b) ? 0x8001 : 1));
  return bit_cast<c10::BFloat16>(static_cast<uint16_t>((a < b) == (a > 0) ? bits + 1 : bits - 1));
}
}  // namespace std
