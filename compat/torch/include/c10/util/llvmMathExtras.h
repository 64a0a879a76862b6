// c10::llvm: bit operations on integers.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace c10::llvm {
enum ZeroBehavior { ZB_Undefined, ZB_Max, ZB_Width };

template <class T>
std::size_t countLeadingZeros(T value, ZeroBehavior = ZB_Width) {
  return static_cast<std::size_t>(std::countl_zero(static_cast<std::make_unsigned_t<T>>(value)));
}
template <class T>
std::size_t countTrailingZeros(T value, ZeroBehavior = ZB_Width) {
  return static_cast<std::size_t>(std::countr_zero(static_cast<std::make_unsigned_t<T>>(value)));
}
// The index of the lowest and of the highest set bit; the largest value of the type for 0.
template <class T>
T findFirstSet(T value) {
  return value == 0 ? std::numeric_limits<T>::max() : static_cast<T>(countTrailingZeros(value));
}
template <class T>
T findLastSet(T value) {
  return value == 0 ? std::numeric_limits<T>::max()
                    : static_cast<T>(std::numeric_limits<T>::digits - 1 - countLeadingZeros(value));
}
constexpr bool isPowerOf2_32(uint32_t value) { return std::has_single_bit(value); }
constexpr bool isPowerOf2_64(uint64_t value) { return std::has_single_bit(value); }
inline unsigned Log2_32(uint32_t value) { return static_cast<unsigned>(std::bit_width(value)) - 1; }
inline unsigned Log2_64(uint64_t value) { return static_cast<unsigned>(std::bit_width(value)) - 1; }
inline uint64_t PowerOf2Ceil(uint64_t value) { return value == 0 ? 0 : std::bit_ceil(value); }
// The smallest power of two above the value.
inline uint64_t NextPowerOf2(uint64_t value) { return std::bit_ceil(value + 1); }
}  // namespace c10::llvm
