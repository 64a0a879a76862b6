// The element type that corresponds to a C++ type.
#pragma once
#include <complex>
#include <cstdint>
#include <type_traits>

#include "lamella/core/complex.h"
#include "lamella/core/half.h"
#include "lamella/graph/hlo/element_type.h"

namespace lamella::hlo {

// Integers by size and sign, so that `long` and `long long` are both S64. Other types do not
// compile.
template <class T>
constexpr ElementType NativeToPrimitiveType() {
  if constexpr (std::is_same_v<T, bool>) {
    return ElementType::PRED;
  } else if constexpr (std::is_integral_v<T> && sizeof(T) <= 8) {
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
  } else if constexpr (std::is_same_v<T, float>) {
    return ElementType::F32;
  } else if constexpr (std::is_same_v<T, double>) {
    return ElementType::F64;
  } else if constexpr (std::is_same_v<T, Half>) {
    return ElementType::F16;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return ElementType::BF16;
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, lamella::complex<float>>) {
    return ElementType::C64;
  } else if constexpr (std::is_same_v<T, std::complex<double>> ||
                       std::is_same_v<T, lamella::complex<double>>) {
    return ElementType::C128;
  } else {
    static_assert(sizeof(T) == 0, "expected bool, an integer, a floating-point or complex number");
  }
}

}  // namespace lamella::hlo
