// Exponentials of lines and their sums, for softmax, its gradient, and logsumexp.
#pragma once
#include "lamella/kernels/cpu/simd/exponential.h"
#include "lamella/kernels/cpu/simd/reduce_fold.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {

template <class C>
inline Granule<C> exp_of(Granule<C> g) {
  for (auto& part : g.part) part = v_exp(part);
  return g;
}
template <class C>
inline Granule<C> minus(Granule<C> a, const Granule<C>& b) {
  for (int i = 0; i < Granule<C>::kParts; ++i) a.part[i] -= b.part[i];
  return a;
}

// Calls f(i, count) for each granule, from element i; only the last one may have fewer elements.
template <class C, class F>
inline void each_granule(int64_t n, F&& f) {
  constexpr int64_t kLanes = Granule<C>::kLanes;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i, std::integral_constant<int64_t, kLanes>());
  if (i < n) f(i, n - i);
}
// Loads n elements, at most a granule; the other lanes become `value`.
template <class C, class N>
inline Granule<C> load_some(const C* x, N n, C value) {
  constexpr int64_t kLanes = Granule<C>::kLanes;
  if (n == kLanes) return load<C>(x);
  C some[kLanes];
  for (C& one : some) one = value;
  std::memcpy(some, x, static_cast<size_t>(n) * sizeof(C));
  return load<C>(some);
}
template <class C, class N>
inline void store_some(C* y, const Granule<C>& g, N n) {
  std::memcpy(y, &g, static_cast<size_t>(n) * sizeof(C));
}

// y[i] = exp(x[i] - shift), unless y is null; returns the sum. x and y may be the same.
template <class C, bool kStores>
inline C exp_line(const C* x, C* y, C shift, int64_t n) {
  const Granule<C> by = fill<C>(shift);
  Granule<C> sum = fill<C>(0);
  each_granule<C>(n, [&](int64_t i, auto now) {
    // The padding of the last granule has the exponential 0.
    Granule<C> e = exp_of<C>(minus<C>(load_some<C>(x + i, now, Ordered<C, true>::kIdentity), by));
    sum = join<Sum<C>>(sum, e);
    if constexpr (kStores) store_some<C>(y + i, e, now);
  });
  return join_lanes<Sum<C>>(sum);
}

// Scratch memory of one thread's call, on the stack while it is small.
template <class T>
class LineBuffer {
 public:
  explicit LineBuffer(int64_t n) : data_(n <= kInline ? inline_ : new T[static_cast<size_t>(n)]) {}
  ~LineBuffer() {
    if (data_ != inline_) delete[] data_;
  }
  LineBuffer(const LineBuffer&) = delete;
  LineBuffer& operator=(const LineBuffer&) = delete;
  T* get() { return data_; }

 private:
  static constexpr int64_t kInline = 1024;
  T inline_[kInline];
  T* data_;
};

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
