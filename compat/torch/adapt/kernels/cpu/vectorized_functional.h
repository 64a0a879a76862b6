// Applies functions of vectors to whole arrays: map, reduce_all and similar. The elements after the
// last whole vector are processed in a partly filled one. Half precision is computed in float: the
// function gets Vectorized<float>.
#pragma once
#include "lamella/kernels/cpu/vectorized.h"

namespace lamella::vec {
inline namespace CPU_CAPABILITY {

// The vectors that the functions below are given for elements of T.
template <class T>
using VectorOf = Vectorized<Wide<T>>;

// `count` elements, at most one vector of them.
template <class T, class In>
VectorOf<T> load_wide(const In* from, int64_t count) {
  if constexpr (std::is_same_v<In, Wide<T>>) {
    return VectorOf<T>::loadu(from, count);
  } else {
    return VectorOf<T>::lanewise(
        [&](int i) { return i < count ? static_cast<float>(from[i]) : 0.0f; });
  }
}
template <class T>
void store_wide(const VectorOf<T>& vector, T* to, int64_t count) {
  if constexpr (std::is_same_v<T, Wide<T>>) {
    vector.store(to, count);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(vector[static_cast<int>(i)]);
  }
}

// out[i] = f(in[i], ...)
template <class T, class F, class... In>
void map_arrays(F&& f, T* out, int64_t size, const In*... in) {
  constexpr int64_t kStep = VectorOf<T>::size();
  for (int64_t i = 0; i < size; i += kStep) {
    int64_t count = size - i < kStep ? size - i : kStep;
    store_wide<T>(f(load_wide<T>(in + i, count)...), out + i, count);
  }
}
template <class T, class F, class In>
void map(F&& f, T* out, const In* in, int64_t size) {
  map_arrays<T>(f, out, size, in);
}
template <class T, class F>
void map2(F&& f, T* out, const T* a, const T* b, int64_t size) {
  map_arrays<T>(f, out, size, a, b);
}
template <class T, class F>
void map3(F&& f, T* out, const T* a, const T* b, const T* c, int64_t size) {
  map_arrays<T>(f, out, size, a, b, c);
}
template <class T, class F>
void map4(F&& f, T* out, const T* a, const T* b, const T* c, const T* d, int64_t size) {
  map_arrays<T>(f, out, size, a, b, c, d);
}

// Reduces a vector's first `count` lanes to one number with a function that joins vectors.
template <class T, class F>
T vec_reduce_all(F&& f, const Vectorized<T>& vector, int64_t count = Vectorized<T>::size()) {
  T result = vector[0];
  for (int i = 1; i < count; ++i) {
    Vectorized<T> sum(result), next(vector[i]);
    result = f(sum, next)[0];
  }
  return result;
}
// The same for size > 0 elements, each mapped first.
template <class T, class Map, class Reduce, class... In>
T reduce_arrays(Map&& map, Reduce&& reduce, int64_t size, const In*... in) {
  using V = VectorOf<T>;
  constexpr int64_t kStep = V::size();
  int64_t first = size < kStep ? size : kStep;
  V sum = map(load_wide<T>(in, first)...);
  for (int64_t i = first; i < size; i += kStep) {
    int64_t count = size - i < kStep ? size - i : kStep;
    V next = map(load_wide<T>(in + i, count)...);
    sum = V::set(sum, reduce(sum, next), count);
  }
  return static_cast<T>(vec_reduce_all<Wide<T>>(reduce, sum, first));
}
template <class T, class F>
T reduce_all(F&& f, const T* data, int64_t size) {
  return reduce_arrays<T>([](const VectorOf<T>& x) { return x; }, f, size, data);
}
template <class T, class F1, class F2>
std::pair<T, T> reduce2_all(F1&& f1, F2&& f2, const T* data, int64_t size) {
  return {reduce_all<T>(f1, data, size), reduce_all<T>(f2, data, size)};
}
template <class T, class Map, class Reduce>
T map_reduce_all(Map&& map, Reduce&& reduce, const T* data, int64_t size) {
  return reduce_arrays<T>(map, reduce, size, data);
}
template <class T, class Map, class Reduce>
T map2_reduce_all(Map&& map, Reduce&& reduce, const T* a, const T* b, int64_t size) {
  return reduce_arrays<T>(map, reduce, size, a, b);
}
template <class T, class Map, class Reduce>
T map3_reduce_all(Map&& map, Reduce&& reduce, const T* a, const T* b, const T* c, int64_t size) {
  return reduce_arrays<T>(map, reduce, size, a, b, c);
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::vec
