// c10::get_default_dtype and c10::set_default_dtype: the dtype of factories that are called without
// one.
#pragma once
#include <c10/core/ScalarType.h>
#include <c10/util/typeid.h>

#include "lamella/abi/operators.h"

namespace c10 {
inline lamella::ScalarType get_default_dtype_as_scalartype() {
  return static_cast<lamella::ScalarType>(lamella_default_dtype());
}
inline lamella::TypeMeta get_default_dtype() {
  return lamella::TypeMeta(get_default_dtype_as_scalartype());
}
inline lamella::TypeMeta get_default_complex_dtype() {
  return lamella::TypeMeta(lamella::to_complex_type(get_default_dtype_as_scalartype()));
}
// TypeError for anything but a floating-point type.
inline void set_default_dtype(lamella::TypeMeta dtype) {
  lamella::detail::check(lamella_set_default_dtype(static_cast<uint8_t>(dtype.toScalarType())));
}
}  // namespace c10
