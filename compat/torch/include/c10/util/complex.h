// c10::complex, and which types are complex.
#pragma once
#include <c10/lamella_names.h>

#include "lamella/core/complex.h"

namespace c10 {
namespace detail {
// c10::complex and std::complex, whose header is not needed here.
template <class T>
concept HasParts = requires(const T& z) {
  typename T::value_type;
  z.real();
  z.imag();
};
}  // namespace detail

// A class, where Lamella and at:: have a function of that name for dtypes and tensors.
template <class T>
struct is_complex : std::bool_constant<detail::HasParts<T>> {};
// The type of the real part; a real type itself.
template <class T>
struct scalar_value_type {
  using type = T;
};
template <detail::HasParts T>
struct scalar_value_type<T> {
  using type = typename T::value_type;
};
}  // namespace c10
