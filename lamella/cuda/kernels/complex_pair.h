// Complex numbers of kernels, and the same functions for real ones.
#pragma once
#include <cmath>

#include "lamella/cuda/kernels/device.h"

namespace lamella::cuda {

template <class T>
struct Pair {
  T re, im;
  Pair() = default;
  LAMELLA_DEVICE explicit Pair(int number) : re(static_cast<T>(number)), im(0) {}
  LAMELLA_DEVICE Pair(T real, T imaginary) : re(real), im(imaginary) {}
  friend LAMELLA_DEVICE Pair operator+(Pair a, Pair b) { return {a.re + b.re, a.im + b.im}; }
  friend LAMELLA_DEVICE Pair operator-(Pair a, Pair b) { return {a.re - b.re, a.im - b.im}; }
  friend LAMELLA_DEVICE Pair operator*(Pair a, Pair b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  // By Smith's method, whose parts overflow only where the quotient does.
  friend LAMELLA_DEVICE Pair operator/(Pair a, Pair b) {
    if (fabs(b.re) >= fabs(b.im)) {
      const T ratio = b.im / b.re, under = b.re + b.im * ratio;
      return {(a.re + a.im * ratio) / under, (a.im - a.re * ratio) / under};
    }
    const T ratio = b.re / b.im, under = b.re * ratio + b.im;
    return {(a.re * ratio + a.im) / under, (a.im * ratio - a.re) / under};
  }
};

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<Pair<T>> {
  using type = T;
};

template <class T>
LAMELLA_DEVICE T conjugate(T x) {
  return x;
}
template <class T>
LAMELLA_DEVICE Pair<T> conjugate(Pair<T> x) {
  return {x.re, -x.im};
}
template <class T>
LAMELLA_DEVICE T real_part(T x) {
  return x;
}
template <class T>
LAMELLA_DEVICE T real_part(Pair<T> x) {
  return x.re;
}
// The sum of the parts' magnitudes, by which LAPACK chooses pivots.
template <class T>
LAMELLA_DEVICE T size_of(T x) {
  return fabs(x);
}
template <class T>
LAMELLA_DEVICE T size_of(Pair<T> x) {
  return fabs(x.re) + fabs(x.im);
}
template <class T>
LAMELLA_DEVICE void make_real(T* to, T value) {
  *to = value;
}
template <class T>
LAMELLA_DEVICE void make_real(Pair<T>* to, T value) {
  *to = Pair<T>(value, 0);
}

}  // namespace lamella::cuda
