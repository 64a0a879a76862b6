// Integer arithmetic with overflow detection.
#pragma once
#include <cstdint>

#include <c10/lamella_names.h>

namespace c10 {
// True on overflow; the result is then the sum modulo 2^64.
inline bool add_overflows(uint64_t a, uint64_t b, uint64_t* result) {
  return __builtin_add_overflow(a, b, result);
}
inline bool mul_overflows(uint64_t a, uint64_t b, uint64_t* result) {
  return __builtin_mul_overflow(a, b, result);
}
inline bool mul_overflows(int64_t a, int64_t b, int64_t* result) {
  return __builtin_mul_overflow(a, b, result);
}
template <class Iterator>
bool safe_multiplies_u64(Iterator first, Iterator last, uint64_t* result) {
  *result = 1;
  bool overflows = false;
  for (; first != last; ++first) {
    overflows |= mul_overflows(*result, static_cast<uint64_t>(*first), result);
  }
  return overflows;
}
template <class Container>
bool safe_multiplies_u64(const Container& values, uint64_t* result) {
  return safe_multiplies_u64(values.begin(), values.end(), result);
}
}  // namespace c10
