// c10::pi and other constants.
#pragma once
#include <c10/lamella_names.h>

namespace c10 {
template <class T>
inline constexpr T pi = T(3.141592653589793238462643383279502884L);
template <class T>
inline constexpr T e = T(2.718281828459045235360287471352662498L);
template <class T>
inline constexpr T sqrt_2 = T(1.414213562373095048801688724209698079L);
}  // namespace c10
