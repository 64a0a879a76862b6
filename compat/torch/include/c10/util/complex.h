// c10::complex, and traits of complex types.
#pragma once
#include <c10/lamella_names.h>
#include <c10/util/complex_math.h>

#include "lamella/core/complex.h"

namespace c10 {
namespace detail {
// Declared here for c10::complex and std::complex, so that <complex> need not be included.
template <class T>
concept HasParts = requires(const T& z) {
  typename T::value_type;
  z.real();
  z.imag();
};
}  // namespace detail

// A class template, whereas lamella:: and at:: have functions of this name for dtypes and tensors.
template <class T>
struct is_complex : std::bool_constant<detail::HasParts<T>> {};
// The type of the real part; a real type maps to itself.
template <class T>
struct scalar_value_type {
  using type = T;
};
template <detail::HasParts T>
struct scalar_value_type<T> {
  using type = typename T::value_type;
};
}  // namespace c10

// Parts, norms and conjugates, as <complex> names them; complex_math.h has the other functions.
namespace std {
template <class T>
constexpr T real(const lamella::complex<T>& z) {
  return z.real();
}
template <class T>
constexpr T imag(const lamella::complex<T>& z) {
  return z.imag();
}
template <class T>
constexpr T norm(const lamella::complex<T>& z) {
  return z.real() * z.real() + z.imag() * z.imag();
}
template <class T>
constexpr lamella::complex<T> conj(const lamella::complex<T>& z) {
  return {z.real(), -z.imag()};
}
}  // namespace std
