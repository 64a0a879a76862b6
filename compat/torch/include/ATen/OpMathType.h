// at::opmath_type: the type in which elements of a type are computed.
#pragma once
#include <c10/core/ScalarType.h>

#include "lamella/core/visit_dtype.h"

namespace at {
template <class T>
using opmath_type = lamella::compute_type<T>;
template <class T>
struct OpMathType {
  using type = lamella::compute_type<T>;
};
inline lamella::ScalarType toOpMathType(lamella::ScalarType type) {
  return lamella::is_reduced_floating_point(type) ? lamella::kFloat : type;
}
}  // namespace at
