// The passes over the data, one for each factor of a length, and the loop over them.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "lamella/kernels/families/fft/butterflies.h"
#include "lamella/kernels/families/fft/plan.h"

namespace lamella::fft {
inline namespace CPU_CAPABILITY {

template <class T, int kLanes>
struct VectorOf {
  typedef T type __attribute__((vector_size(sizeof(T) * kLanes)));
};
template <class T>
struct VectorOf<T, 1> {
  using type = T;
};
template <class T, int kLanes>
using Vector = typename VectorOf<T, kLanes>::type;

// In groups of 2 h lanes, low_blocks() joins the lower halves of a and b, and high_blocks() the
// upper halves; the half of a comes first.
template <int h, class V, size_t... i>
LAMELLA_ALWAYS_INLINE V low_blocks(const V& a, const V& b, std::index_sequence<i...>) {
  constexpr int n = sizeof...(i);
  return __builtin_shufflevector(
      a, b,
      ((static_cast<int>(i) & h) == 0 ? static_cast<int>(i) : n + static_cast<int>(i) - h)...);
}
template <int h, class V, size_t... i>
LAMELLA_ALWAYS_INLINE V high_blocks(const V& a, const V& b, std::index_sequence<i...>) {
  constexpr int n = sizeof...(i);
  return __builtin_shufflevector(
      a, b,
      ((static_cast<int>(i) & h) == 0 ? static_cast<int>(i) + h : n + static_cast<int>(i))...);
}
template <int h, int kLanes, class V>
LAMELLA_ALWAYS_INLINE void swap_blocks(V* rows) {
  using Index = std::make_index_sequence<kLanes>;
  for (int i = 0; i < kLanes; ++i) {
    if ((i & h) != 0) continue;
    const V a = rows[i], b = rows[i + h];
    rows[i] = low_blocks<h>(a, b, Index());
    rows[i + h] = high_blocks<h>(a, b, Index());
  }
  if constexpr (h > 1) swap_blocks<h / 2, kLanes>(rows);
}
template <int kLanes, class V>
LAMELLA_ALWAYS_INLINE void transpose(V* rows) {
  swap_blocks<kLanes / 2, kLanes>(rows);
}

template <class V, size_t... i>
LAMELLA_ALWAYS_INLINE Pair<V> take_apart(const V& a, const V& b, std::index_sequence<i...>) {
  return {__builtin_shufflevector(a, b, (2 * static_cast<int>(i))...),
          __builtin_shufflevector(a, b, (2 * static_cast<int>(i) + 1)...)};
}
template <int kFrom, class V, size_t... i>
LAMELLA_ALWAYS_INLINE V put_together(const V& re, const V& im, std::index_sequence<i...>) {
  constexpr int n = sizeof...(i);
  return __builtin_shufflevector(
      re, im, (static_cast<int>(i) % 2 * n + (kFrom + static_cast<int>(i)) / 2)...);
}
template <class V, size_t... i>
LAMELLA_ALWAYS_INLINE V reversed(const V& a, std::index_sequence<i...>) {
  return __builtin_shufflevector(a, a, (static_cast<int>(sizeof...(i) - 1 - i))...);
}

// Loads and stores kLanes complex numbers, with real and imaginary parts in separate vectors.
template <class T, int kLanes>
LAMELLA_ALWAYS_INLINE Pair<Vector<T, kLanes>> load(const T* from) {
  using V = Vector<T, kLanes>;
  if constexpr (kLanes == 1) {
    return {from[0], from[1]};
  } else {
    V a, b;
    std::memcpy(&a, from, sizeof(V));
    std::memcpy(&b, from + kLanes, sizeof(V));
    return take_apart(a, b, std::make_index_sequence<kLanes>());
  }
}
template <class T, int kLanes>
LAMELLA_ALWAYS_INLINE void store(T* to, const Pair<Vector<T, kLanes>>& z) {
  if constexpr (kLanes == 1) {
    to[0] = z.re;
    to[1] = z.im;
  } else {
    using V = Vector<T, kLanes>;
    using Index = std::make_index_sequence<kLanes>;
    const V a = put_together<0>(z.re, z.im, Index()), b = put_together<kLanes>(z.re, z.im, Index());
    std::memcpy(to, &a, sizeof(V));
    std::memcpy(to + kLanes, &b, sizeof(V));
  }
}
template <class V>
LAMELLA_ALWAYS_INLINE Pair<V> turned_if(bool turn, const Pair<V>& z) {
  return turn ? Pair<V>{z.im, z.re} : z;
}

// ---- Passes ----

// A pass of butterflies, which combine each point of `source` with those at multiples of
// `stride * groups` after it.
template <class T, int kRadix, class V, class Source>
void run_pass(const Pass<T>& pass, int64_t stride, const Source& source, Pair<V>* out) {
  const int64_t apart = stride * pass.groups;
  const T* w = pass.twiddles.data();
  for (int64_t p = 0; p < pass.groups; ++p, w += 2 * (kRadix - 1)) {
    Pair<V>* to = out + p * kRadix * stride;
    for (int64_t q = 0; q < stride; ++q) {
      Pair<V> a[kRadix];
      for (int k = 0; k < kRadix; ++k) a[k] = source(p * stride + q + k * apart);
      Butterfly<T, kRadix>::run(a);
      to[q] = a[0];
      if (pass.groups == 1) {
        for (int k = 1; k < kRadix; ++k) to[q + k * stride] = a[k];
      } else {
        for (int k = 1; k < kRadix; ++k) {
          to[q + k * stride] = times(a[k], Pair<T>{w[2 * k - 2], w[2 * k - 1]});
        }
      }
    }
  }
}

// A pass of a prime radix, by the definition of the transform; points of opposite angles are
// paired.
template <class T, class V, class Source>
void run_prime_pass(const Pass<T>& pass, int64_t stride, const Source& source, Pair<V>* out) {
  const int64_t radix = pass.radix, half = (radix - 1) / 2, apart = stride * pass.groups;
  const T* w = pass.twiddles.data();
  const T* roots = pass.roots.data();
  Pair<V> sums[kLargestPrime / 2 + 1], differences[kLargestPrime / 2 + 1];
  for (int64_t p = 0; p < pass.groups; ++p, w += 2 * (radix - 1)) {
    Pair<V>* to = out + p * radix * stride;
    for (int64_t q = 0; q < stride; ++q) {
      const Pair<V> first = source(p * stride + q);
      Pair<V> all = first;
      for (int64_t j = 1; j <= half; ++j) {
        const Pair<V> a = source(p * stride + q + j * apart);
        const Pair<V> b = source(p * stride + q + (radix - j) * apart);
        sums[j] = a + b;
        differences[j] = a - b;
        all = all + sums[j];
      }
      to[q] = all;
      for (int64_t k = 1; k <= half; ++k) {
        Pair<V> even = first, odd = {V{}, V{}};
        int64_t at = 0;
        for (int64_t j = 1; j <= half; ++j) {
          at += k;
          if (at >= radix) at -= radix;
          const T c = roots[2 * at], s = roots[2 * at + 1];
          even.re += c * sums[j].re;
          even.im += c * sums[j].im;
          odd.re -= s * differences[j].im;
          odd.im += s * differences[j].re;
        }
        to[q + k * stride] = times(even + odd, Pair<T>{w[2 * k - 2], w[2 * k - 1]});
        const int64_t other = radix - k;
        to[q + other * stride] = times(even - odd, Pair<T>{w[2 * other - 2], w[2 * other - 1]});
      }
    }
  }
}

template <class T, class V, class Source>
void run_any_pass(const Pass<T>& pass, int64_t stride, const Source& source, Pair<V>* out) {
  switch (pass.radix) {
    case 2:
      return run_pass<T, 2>(pass, stride, source, out);
    case 3:
      return run_pass<T, 3>(pass, stride, source, out);
    case 4:
      return run_pass<T, 4>(pass, stride, source, out);
    case 5:
      return run_pass<T, 5>(pass, stride, source, out);
    case 8:
      return run_pass<T, 8>(pass, stride, source, out);
    default:
      return run_prime_pass(pass, stride, source, out);
  }
}

// A source that reads points from memory.
template <class V>
struct InMemory {
  const Pair<V>* from;
  LAMELLA_ALWAYS_INLINE Pair<V> operator()(int64_t i) const { return from[i]; }
};

// Transforms the points of `source` and returns the result's memory, `a` or `b`, which both hold
// plan.n points.
template <class T, class V, class Source>
const Pair<V>* run_passes(const Plan<T>& plan, const Source& source, Pair<V>* a, Pair<V>* b) {
  if (plan.passes.empty()) {
    a[0] = source(0);
    return a;
  }
  int64_t stride = 1;
  bool first = true;
  for (const Pass<T>& pass : plan.passes) {
    if (first) {
      run_any_pass(pass, stride, source, a);
    } else {
      run_any_pass(pass, stride, InMemory<V>{a}, b);
      std::swap(a, b);
    }
    first = false;
    stride *= pass.radix;
  }
  return a;
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::fft
