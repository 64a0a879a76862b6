// The element type that corresponds to a C++ type.
#pragma once
#include <complex>
#include <cstdint>
#include <type_traits>

#include "lamella/graph/hlo/element_type.h"

namespace lamella::hlo {

// Integers by size and sign, so that `long` and `long long` are both S64. Other types do not
// compile.
template <class T>
constexpr ElementType NativeToPrimitiveType() {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8) {
    constexpr bool kSigned = std::is_signed_v<T>;
    switch (sizeof(T)) {
      case 1:
        return kSigned ? ElementType::S8 : ElementType::U8;
      case 2:
        return kSigned ? ElementType::S16 : ElementType::U16;
      case 4:
        return kSigned ? ElementType::S32 : ElementType::U32;
      default:
        return kSigned ? ElementType::S64 : ElementType::U64;
    }
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    return ElementType::C64;
  } else if constexpr (std::is_same_v<T, std::complex<double>>) {
    return ElementType::C128;
  } else {
    constexpr ElementType kType = element_type_of(detail::scalar_type_of_cpp<T>());
    static_assert(kType != ElementType::Invalid,
                  "expected bool, an integer, a floating-point or complex number");
    return kType;
  }
}

}  // namespace lamella::hlo
