// Transforms of a few points, in registers, over numbers or vectors of numbers.
//
// V is float, double, or a GCC vector of them, each lane of which is a separate transform. All are
// forward transforms of r points: a[k] becomes the sum over j of a[j] exp(-2 pi i j k / r).
#pragma once
#include "lamella/core/macros.h"

namespace lamella::fft {
inline namespace CPU_CAPABILITY {

template <class V>
struct Pair {  // a complex number
  V re, im;
};

template <class V>
LAMELLA_ALWAYS_INLINE Pair<V> operator+(const Pair<V>& a, const Pair<V>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <class V>
LAMELLA_ALWAYS_INLINE Pair<V> operator-(const Pair<V>& a, const Pair<V>& b) {
  return {a.re - b.re, a.im - b.im};
}
template <class V, class W>
LAMELLA_ALWAYS_INLINE Pair<V> times(const Pair<V>& a, const Pair<W>& w) {
  return {a.re * w.re - a.im * w.im, a.re * w.im + a.im * w.re};
}
template <class V>
LAMELLA_ALWAYS_INLINE Pair<V> times_minus_i(const Pair<V>& a) {
  return {a.im, -a.re};
}

template <class T, int kRadix>
struct Butterfly;

template <class T>
struct Butterfly<T, 2> {
  template <class V>
  static LAMELLA_ALWAYS_INLINE void run(Pair<V>* a) {
    const Pair<V> sum = a[0] + a[1];
    a[1] = a[0] - a[1];
    a[0] = sum;
  }
};

template <class T>
struct Butterfly<T, 3> {
  template <class V>
  static LAMELLA_ALWAYS_INLINE void run(Pair<V>* a) {
    constexpr T kSin = T(0.86602540378443864676);
    const Pair<V> sum = a[1] + a[2], difference = a[1] - a[2];
    const Pair<V> middle = {a[0].re - T(0.5) * sum.re, a[0].im - T(0.5) * sum.im};
    const Pair<V> turned = {kSin * difference.im, -kSin * difference.re};
    a[0] = a[0] + sum;
    a[1] = middle + turned;
    a[2] = middle - turned;
  }
};

template <class T>
struct Butterfly<T, 4> {
  template <class V>
  static LAMELLA_ALWAYS_INLINE void run(Pair<V>* a) {
    const Pair<V> even = a[0] + a[2], odd = a[0] - a[2];
    const Pair<V> sum = a[1] + a[3], turned = times_minus_i(a[1] - a[3]);
    a[0] = even + sum;
    a[1] = odd + turned;
    a[2] = even - sum;
    a[3] = odd - turned;
  }
};

template <class T>
struct Butterfly<T, 5> {
  template <class V>
  static LAMELLA_ALWAYS_INLINE void run(Pair<V>* a) {
    constexpr T kCos1 = T(0.30901699437494742410), kCos2 = T(-0.80901699437494742410);
    constexpr T kSin1 = T(0.95105651629515357212), kSin2 = T(0.58778525229247312917);
    const Pair<V> s1 = a[1] + a[4], d1 = a[1] - a[4], s2 = a[2] + a[3], d2 = a[2] - a[3];
    const Pair<V> m1 = {a[0].re + kCos1 * s1.re + kCos2 * s2.re,
                        a[0].im + kCos1 * s1.im + kCos2 * s2.im};
    const Pair<V> m2 = {a[0].re + kCos2 * s1.re + kCos1 * s2.re,
                        a[0].im + kCos2 * s1.im + kCos1 * s2.im};
    const Pair<V> t1 = {kSin1 * d1.im + kSin2 * d2.im, -(kSin1 * d1.re + kSin2 * d2.re)};
    const Pair<V> t2 = {kSin2 * d1.im - kSin1 * d2.im, kSin1 * d2.re - kSin2 * d1.re};
    a[0] = a[0] + s1 + s2;
    a[1] = m1 + t1;
    a[2] = m2 + t2;
    a[3] = m2 - t2;
    a[4] = m1 - t1;
  }
};

template <class T>
struct Butterfly<T, 8> {
  template <class V>
  static LAMELLA_ALWAYS_INLINE void run(Pair<V>* a) {
    constexpr T kHalf = T(0.70710678118654752440);
    Pair<V> even[4] = {a[0] + a[4], a[1] + a[5], a[2] + a[6], a[3] + a[7]};
    Pair<V> odd[4] = {a[0] - a[4], a[1] - a[5], times_minus_i(a[2] - a[6]), a[3] - a[7]};
    // Multiplies the second number by exp(-i pi / 4), and the fourth by exp(-3 i pi / 4).
    odd[1] = {kHalf * (odd[1].re + odd[1].im), kHalf * (odd[1].im - odd[1].re)};
    odd[3] = {kHalf * (odd[3].im - odd[3].re), -kHalf * (odd[3].re + odd[3].im)};
    Butterfly<T, 4>::run(even);
    Butterfly<T, 4>::run(odd);
    for (int k = 0; k < 4; ++k) {
      a[2 * k] = even[k];
      a[2 * k + 1] = odd[k];
    }
  }
};

}  // namespace CPU_CAPABILITY
}  // namespace lamella::fft
