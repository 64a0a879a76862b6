// Sums and products of integers.
#pragma once
#include <c10/util/ArrayRef.h>

#include <iterator>
#include <utility>

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
// The product of the sizes from the smaller of both dimensions on to before the larger.
template <class C>
int64_t numelements_between_dim(int first, int last, const C& sizes) {
  if (first > last) std::swap(first, last);
  LAMELLA_CHECK(first >= 0 && last < static_cast<int64_t>(sizes.size()),
                "numelements_between_dim: expected dimensions from 0 to below ", sizes.size(),
                ", got ", first, " and ", last);
  return multiply_integers(std::next(sizes.begin(), first), std::next(sizes.begin(), last));
}
template <class C>
int64_t numelements_to_dim(int dim, const C& sizes) {
  LAMELLA_CHECK(dim >= 0 && dim <= static_cast<int64_t>(sizes.size()),
                "numelements_to_dim: expected a dimension from 0 to ", sizes.size(), ", got ", dim);
  return multiply_integers(sizes.begin(), std::next(sizes.begin(), dim));
}
// 1 behind the last dimension.
template <class C>
int64_t numelements_from_dim(int dim, const C& sizes) {
  LAMELLA_CHECK(dim >= 0, "numelements_from_dim: expected a dimension from 0 on, got ", dim);
  if (dim > static_cast<int64_t>(sizes.size())) return 1;
  return multiply_integers(std::next(sizes.begin(), dim), sizes.end());
}
}  // namespace c10
