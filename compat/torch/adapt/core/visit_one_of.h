// visit_one_of<kFloat, kHalf>(dtype, op, f): f.operator()<T>() for the dtype's C++ type T, one of
// those listed; NotImplementedError for others.
#pragma once
#include "lamella/core/visit_dtype.h"

namespace lamella {

template <ScalarType first, ScalarType... rest, class F>
decltype(auto) visit_one_of(ScalarType dtype, const char* op, F&& f) {
  if (dtype == first) return f.template operator()<ScalarTypeToCppTypeT<first>>();
  if constexpr (sizeof...(rest) != 0) {
    return visit_one_of<rest...>(dtype, op, f);
  } else {
    detail::throw_dtype(op, dtype);
  }
}

}  // namespace lamella
