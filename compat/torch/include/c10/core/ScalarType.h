// c10::ScalarType, at::kFloat, ….
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/scalar_type.h"

// Declared in the type's namespace, so that argument-dependent lookup finds it.
namespace lamella {
// PyTorch's other spellings.
LAMELLA_HIDDEN inline constexpr ScalarType kU8 = ScalarType::Byte, kInt8 = ScalarType::Char,
                                           kUInt8 = ScalarType::Byte, kInt16 = ScalarType::Short,
                                           kInt32 = ScalarType::Int, kInt64 = ScalarType::Long,
                                           kFloat16 = ScalarType::Half,
                                           kFloat32 = ScalarType::Float,
                                           kFloat64 = ScalarType::Double,
                                           kComplexFloat32 = ScalarType::ComplexHalf,
                                           kComplex64 = ScalarType::ComplexFloat,
                                           kComplex128 = ScalarType::ComplexDouble;
inline constexpr size_t elementSize(ScalarType type) { return element_size(type); }
inline constexpr bool isFloatingType(ScalarType type) { return is_floating_point(type); }
inline constexpr bool isComplexType(ScalarType type) { return is_complex(type); }
inline constexpr bool isIntegralType(ScalarType type, bool include_bool) {
  return is_integral(type, include_bool);
}
inline constexpr bool is_reduced_floating_point(ScalarType type) {
  return type == ScalarType::Half || type == ScalarType::BFloat16 || is_float8(type);
}
inline constexpr bool isSignedType(ScalarType type) { return is_signed_type(type); }
inline constexpr ScalarType toRealValueType(ScalarType type) { return to_real_type(type); }
inline ScalarType toComplexType(ScalarType type) { return to_complex_type(type); }
inline ScalarType promoteTypes(ScalarType a, ScalarType b) { return promote_types(a, b); }
inline constexpr bool canCast(ScalarType from, ScalarType to) { return can_cast(from, to); }

// Quantized types exist by name only, as the integer types of their storage.
constexpr bool isQIntType(lamella::ScalarType type) {
  using enum lamella::ScalarType;
  return type == QInt8 || type == QUInt8 || type == QInt32 || type == QUInt4x2 || type == QUInt2x4;
}
constexpr lamella::ScalarType toUnderlying(lamella::ScalarType type) {
  using enum lamella::ScalarType;
  return type == QInt8 ? Char : type == QInt32 ? Int : isQIntType(type) ? Byte : type;
}
}  // namespace lamella

namespace c10::impl {
// The C++ type of a dtype's elements.
template <lamella::ScalarType type>
using ScalarTypeToCPPTypeT = lamella::ScalarTypeToCppTypeT<type>;
template <lamella::ScalarType dtype>
struct ScalarTypeToCPPType {
  using type = ScalarTypeToCPPTypeT<dtype>;
};
}  // namespace c10::impl

// AT_FORALL_…(_): expands to _(C++ type, name of the dtype) for each type of a group.
#define AT_FORALL_INT_TYPES(_) \
  _(uint8_t, Byte)             \
  _(int8_t, Char)              \
  _(int16_t, Short)            \
  _(int, Int)                  \
  _(int64_t, Long)
#define AT_FORALL_COMPLEX_TYPES(_)           \
  _(::lamella::complex<float>, ComplexFloat) \
  _(::lamella::complex<double>, ComplexDouble)
#define AT_FORALL_FLOAT8_TYPES(_)        \
  _(::lamella::Float8_e5m2, Float8_e5m2) \
  _(::lamella::Float8_e4m3fn, Float8_e4m3fn)
#define AT_FORALL_SCALAR_TYPES(_) \
  AT_FORALL_INT_TYPES(_)          \
  _(float, Float)                 \
  _(double, Double)
#define AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_EXCEPT_COMPLEX_HALF_F8NZ(_) \
  AT_FORALL_SCALAR_TYPES(_)                                             \
  AT_FORALL_COMPLEX_TYPES(_)                                            \
  AT_FORALL_FLOAT8_TYPES(_)                                             \
  _(::lamella::Half, Half)                                              \
  _(bool, Bool)                                                         \
  _(::lamella::BFloat16, BFloat16)
#define AT_FORALL_SCALAR_TYPES_WITH_COMPLEX(_)                    \
  AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_EXCEPT_COMPLEX_HALF_F8NZ(_) \
  _(::lamella::complex<::lamella::Half>, ComplexHalf)
#define LAMELLA_FORALL_ONE(_, Name) \
  _(::c10::impl::ScalarTypeToCPPTypeT<::lamella::ScalarType::Name>, Name)
#define AT_FORALL_SCALAR_TYPES_AND(A, _) \
  AT_FORALL_SCALAR_TYPES(_)              \
  LAMELLA_FORALL_ONE(_, A)
#define AT_FORALL_SCALAR_TYPES_AND2(A, B, _) \
  AT_FORALL_SCALAR_TYPES_AND(A, _)           \
  LAMELLA_FORALL_ONE(_, B)
#define AT_FORALL_SCALAR_TYPES_AND3(A, B, C, _) \
  AT_FORALL_SCALAR_TYPES_AND2(A, B, _)          \
  LAMELLA_FORALL_ONE(_, C)
