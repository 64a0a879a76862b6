// Sums and products of integers.
#pragma once
#include <c10/util/ArrayRef.h>

namespace c10 {
template <class C>
int64_t sum_integers(const C& numbers) {
  int64_t sum = 0;
  for (auto number : numbers) sum += static_cast<int64_t>(number);
  return sum;
}
template <class C>
int64_t multiply_integers(const C& numbers) {
  int64_t product = 1;
  for (auto number : numbers) product *= static_cast<int64_t>(number);
  return product;
}
}  // namespace c10
