// at::native: splits a linear element index into one index for each dimension, and steps these.
#pragma once
#include <ATen/Parallel.h>
#include <ATen/cpu/vec/vec.h>

#include <utility>

namespace at::native {

// data_index_init(n, x, X, y, Y): sets x and y to the digits of n in the bases X and Y; the last
// one varies fastest.
template <class T>
T data_index_init(T offset) {
  return offset;
}
template <class T, class... A>
T data_index_init(T offset, T& x, const T& X, A&&... rest) {
  offset = data_index_init(offset, std::forward<A>(rest)...);
  x = offset % X;
  return offset / X;
}
// Increments the indices. True if they wrapped around to zero.
inline bool data_index_step() { return true; }
template <class T, class... A>
bool data_index_step(T& x, const T& X, A&&... rest) {
  if (!data_index_step(std::forward<A>(rest)...)) return false;
  x = x + 1 == X ? 0 : x + 1;
  return x == 0;
}

}  // namespace at::native
