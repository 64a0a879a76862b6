// Division that rounds towards minus infinity, as in Python.
#pragma once
#include <cmath>

#include <c10/util/TypeSafeSignMath.h>
#include <c10/util/copysign.h>

namespace c10 {
template <class T>
T div_floor_integer(T a, T b) {
  T quotient = a / b;
  return signs_differ(a, b) && a % b != 0 ? T(quotient - 1) : quotient;
}
template <class T>
T div_floor_floating(T a, T b) {
  if (b == T(0)) return a / b;
  T rest = std::fmod(a, b);
  T quotient = (a - rest) / b;
  if (rest != T(0) && (b < T(0)) != (rest < T(0))) quotient -= T(1);
  if (quotient == T(0)) return c10::copysign(T(0), a / b);
  // Corrects floor() where the quotient was rounded across an integer.
  T whole = std::floor(quotient);
  return quotient - whole > T(0.5) ? whole + T(1) : whole;
}
template <class T>
T div_mod(T a, T b) {
  T rest = std::fmod(a, b);
  return rest != T(0) && (b < T(0)) != (rest < T(0)) ? rest + b : rest;
}
}  // namespace c10
