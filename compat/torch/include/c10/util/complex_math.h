// Elementary functions of c10::complex, which namespace std and the global one have as well.
#pragma once
#include <cmath>

#include "lamella/core/complex.h"
#include "lamella/core/for_each.h"

// C's functions do the work, in double, so that <complex> need not be included.
namespace lamella::complex_math {

__extension__ typedef __complex__ double Builtin;
template <class T>
Builtin builtin(const complex<T>& z) {
  Builtin result;
  __real__ result = z.real();
  __imag__ result = z.imag();
  return result;
}
template <class T>
complex<T> own(Builtin z) {
  return {static_cast<T>(__real__ z), static_cast<T>(__imag__ z)};
}
#define LAMELLA_DEFINE(name)                      \
  template <class T>                              \
  complex<T> name(const complex<T>& z) {          \
    return own<T>(__builtin_c##name(builtin(z))); \
  }
LAMELLA_FOR_EACH(LAMELLA_DEFINE, exp, log, sqrt, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh,
                 asinh, acosh, atanh)
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
template <class T>
complex<T> log10(const complex<T>& z) {
  return log(z) * static_cast<T>(0.43429448190325182765);
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
  return own<T>(__builtin_cpow(builtin(a), builtin(b)));
}
template <class T>
complex<T> pow(const complex<T>& a, const std::type_identity_t<T>& b) {
  return pow(a, complex<T>(b));
}
template <class T>
complex<T> pow(const std::type_identity_t<T>& a, const complex<T>& b) {
  return pow(complex<T>(a), b);
}

}  // namespace lamella::complex_math

#define LAMELLA_USE(name) using lamella::complex_math::name;
#define LAMELLA_USE_ALL                                                                            \
  LAMELLA_FOR_EACH(LAMELLA_USE, exp, log, sqrt, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, \
                   asinh, acosh, atanh, abs, arg, log2, log10, log1p, expm1, pow)
LAMELLA_USE_ALL
namespace std {
LAMELLA_USE_ALL
}
#undef LAMELLA_USE_ALL
#undef LAMELLA_USE
