// Sums and products of integers.
#pragma once
#include <c10/util/ArrayRef.h>

namespace c10 {
template <class Iterator>
int64_t sum_integers(Iterator first, Iterator last) {
  int64_t sum = 0;
  for (; first != last; ++first) sum += static_cast<int64_t>(*first);
  return sum;
}
template <class C>
int64_t sum_integers(const C& numbers) {
  return sum_integers(numbers.begin(), numbers.end());
}
template <class Iterator>
int64_t multiply_integers(Iterator first, Iterator last) {
  int64_t product = 1;
  for (; first != last; ++first) product *= static_cast<int64_t>(*first);
  return product;
}
template <class C>
int64_t multiply_integers(const C& numbers) {
  return multiply_integers(numbers.begin(), numbers.end());
}
}  // namespace c10
