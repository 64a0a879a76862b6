// AT_DISPATCH_V2(type, "operator", AT_WRAP([&] { ... scalar_t ... }), AT_EXPAND(AT_ALL_TYPES),
// kHalf): AT_DISPATCH_… with a free list of types.
#pragma once
#include <ATen/Dispatch.h>

#include "lamella/core/visit_dtype.h"

namespace lamella {
// visit_one_of<kFloat, kHalf>(dtype, op, f): f.operator()<T>() for the dtype's C++ type T, one of
// those listed; NotImplementedError for others.
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

#define AT_WRAP(...) __VA_ARGS__
#define AT_EXPAND(types) types
#define AT_DISPATCH_V2(type, name, body, ...) \
  ::lamella::visit_one_of<__VA_ARGS__>(type, name, [&]<class scalar_t>() { return body(); })
#define THO_DISPATCH_V2(type, name, body, ...) AT_DISPATCH_V2(type, name, body, __VA_ARGS__)

#define AT_FLOATING_TYPES ::lamella::kDouble, ::lamella::kFloat
#define AT_INTEGRAL_TYPES \
  ::lamella::kByte, ::lamella::kChar, ::lamella::kInt, ::lamella::kLong, ::lamella::kShort
#define AT_BAREBONES_UNSIGNED_TYPES ::lamella::kUInt16, ::lamella::kUInt32, ::lamella::kUInt64
#define AT_INTEGRAL_TYPES_V2 AT_INTEGRAL_TYPES, AT_BAREBONES_UNSIGNED_TYPES
#define AT_COMPLEX_TYPES ::lamella::kComplexDouble, ::lamella::kComplexFloat
#define AT_ALL_TYPES AT_INTEGRAL_TYPES, AT_FLOATING_TYPES
#define AT_ALL_TYPES_AND_COMPLEX AT_ALL_TYPES, AT_COMPLEX_TYPES
