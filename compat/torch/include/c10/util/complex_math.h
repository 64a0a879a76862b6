// Elementary functions of c10::complex, which namespace std and the global one have as well.
#pragma once
#include <cmath>
#include <complex>

#include "lamella/core/complex.h"

namespace lamella::complex_math {

template <class T>
std::complex<T> standard(const complex<T>& z) {
  return {z.real(), z.imag()};
}
template <class T>
complex<T> own(const std::complex<T>& z) {
  return {z.real(), z.imag()};
}
#define LAMELLA_FOR_COMPLEX(X)                                                                   \
  X(exp)                                                                                         \
  X(log)                                                                                         \
  X(log10) X(sqrt) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) \
      X(acosh) X(atanh)
#define LAMELLA_DEFINE(name)             \
  template <class T>                     \
  complex<T> name(const complex<T>& z) { \
    return own(std::name(standard(z)));  \
  }
LAMELLA_FOR_COMPLEX(LAMELLA_DEFINE)
#undef LAMELLA_DEFINE

template <class T>
T abs(const complex<T>& z) {
  return std::hypot(z.real(), z.imag());
}
template <class T>
T arg(const complex<T>& z) {
  return std::atan2(z.imag(), z.real());
}
template <class T>
complex<T> log2(const complex<T>& z) {
  return log(z) * static_cast<T>(1.4426950408889634074);
}
// log |1 + z| is log1p(x (2 + x) + y²) / 2, which keeps the digits that 1 + z loses for a small z.
template <class T>
complex<T> log1p(const complex<T>& z) {
  const T x = z.real(), y = z.imag();
  if (!(abs(z) < T(0.5))) return log(T(1) + z);
  return {std::log1p(x * (2 + x) + y * y) / 2, std::atan2(y, 1 + x)};
}
// The real part exp(x) cos(y) - 1 is expm1(x) cos(y) - 2 sin²(y / 2).
template <class T>
complex<T> expm1(const complex<T>& z) {
  const T x = z.real(), y = z.imag(), half = std::sin(y / 2);
  return {std::expm1(x) * std::cos(y) - 2 * half * half, std::exp(x) * std::sin(y)};
}
template <class T>
complex<T> pow(const complex<T>& a, const complex<T>& b) {
  return own(std::pow(standard(a), standard(b)));
}
template <class T>
complex<T> pow(const complex<T>& a, const std::type_identity_t<T>& b) {
  return own(std::pow(standard(a), b));
}
template <class T>
complex<T> pow(const std::type_identity_t<T>& a, const complex<T>& b) {
  return own(std::pow(a, standard(b)));
}

}  // namespace lamella::complex_math

#define LAMELLA_USE(name) using lamella::complex_math::name;
#define LAMELLA_USE_ALL            \
  LAMELLA_FOR_COMPLEX(LAMELLA_USE) \
  LAMELLA_FOR_COMPLEX_TOO(LAMELLA_USE)
#define LAMELLA_FOR_COMPLEX_TOO(X) X(abs) X(arg) X(log2) X(log1p) X(expm1) X(pow)
LAMELLA_USE_ALL
namespace std {
LAMELLA_USE_ALL
}
#undef LAMELLA_USE_ALL
#undef LAMELLA_USE
#undef LAMELLA_FOR_COMPLEX_TOO
#undef LAMELLA_FOR_COMPLEX
