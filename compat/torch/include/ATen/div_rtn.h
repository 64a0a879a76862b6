// div_rtn: division that rounds towards minus infinity.
#pragma once
template <class T>
T div_rtn(T a, T b) {
  T quotient = a / b;
  return quotient - static_cast<T>(a % b != 0 && (a < 0) != (b < 0));
}
