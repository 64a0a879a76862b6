// at::native: the index of an element as a number for each dimension, and its steps.
#pragma once
#include <ATen/Parallel.h>
#include <ATen/cpu/vec/vec.h>

#include <utility>

namespace at::native {

// data_index_init(n, x, X, y, Y): the digits of n in the bases X and Y, the last one the fastest.
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
// One further. True if it came back to the beginning.
inline bool data_index_step() { return true; }
template <class T, class... A>
bool data_index_step(T& x, const T& X, A&&... rest) {
  if (!data_index_step(std::forward<A>(rest)...)) return false;
  x = x + 1 == X ? 0 : x + 1;
  return x == 0;
}

}  // namespace at::native
