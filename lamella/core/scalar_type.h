// ScalarType: the element types of tensors, their C++ types, names and promotion. Derived from
// scalar_type.def.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lamella/core/complex.h"
#include "lamella/core/error.h"
#include "lamella/core/half.h"

namespace lamella {

enum class ScalarType : int8_t {
#define LAMELLA_SCALAR_TYPE(type, name, number, text, ...) name = number,
#define LAMELLA_SCALAR_NAME(name, number, text, bytes) name = number,
#include "lamella/core/scalar_type.def"
  NumOptions = 47
};

#define LAMELLA_SCALAR_TYPE(type, name, number, text, ...) \
  LAMELLA_HIDDEN inline constexpr ScalarType k##name = ScalarType::name;
#define LAMELLA_SCALAR_NAME(name, number, text, bytes) \
  LAMELLA_HIDDEN inline constexpr ScalarType k##name = ScalarType::name;
#include "lamella/core/scalar_type.def"

// CppTypeToScalarType<float>::value == ScalarType::Float, and back. Both look up the table, so that
// a file instantiates only the types that it uses.
namespace detail {
template <class T>
constexpr ScalarType scalar_type_of_cpp() {
#define LAMELLA_SCALAR_TYPE(cpp, name, number, text, ...) \
  if (__is_same(T, cpp)) return ScalarType::name;
#include "lamella/core/scalar_type.def"
  // `long long` is int64_t's twin where that is `long`.
  if (__is_same(T, long long)) return ScalarType::Long;
  if (__is_same(T, unsigned long long)) return ScalarType::UInt64;
  return ScalarType::Undefined;
}
template <class T>
struct TypeOf {
  using type = T;
};
template <ScalarType S>
constexpr auto cpp_of_scalar_type() {
#define LAMELLA_SCALAR_TYPE(cpp, name, number, text, ...) \
  if constexpr (S == ScalarType::name) {                  \
    return TypeOf<cpp>();                                 \
  } else  // NOLINT
#include "lamella/core/scalar_type.def"
  { return; }
}
}  // namespace detail
template <class T>
struct CppTypeToScalarType;
template <class T>
  requires(detail::scalar_type_of_cpp<T>() != ScalarType::Undefined)
struct CppTypeToScalarType<T> {
  static constexpr ScalarType value = detail::scalar_type_of_cpp<T>();
  constexpr operator ScalarType() const { return value; }  // NOLINT: as std::integral_constant's
  constexpr ScalarType operator()() const { return value; }
};
template <ScalarType S>
struct ScalarTypeToCppType : decltype(detail::cpp_of_scalar_type<S>()) {};
template <ScalarType S>
using ScalarTypeToCppTypeT = typename ScalarTypeToCppType<S>::type;

namespace detail {
enum ScalarTraits : uint8_t {
  kIsIntegral = 1,
  kIsFloating = 2,
  kIsComplex = 4,
  kIsStored = 8,
  kIsFloat8 = 16
};
struct ScalarTypeTable {
  uint8_t bytes[64];
  uint8_t traits[64];
};
// "float8_e5m2" and its likes.
inline constexpr uint8_t traits_of_name(const char* text) {
  for (const char* c = "float8"; *c != 0; ++c, ++text) {
    if (*c != *text) return 0;
  }
  return kIsFloat8;
}
template <class T>
inline constexpr uint8_t traits_of() {
  if constexpr (is_complex_type_v<T>) return kIsStored | kIsComplex;
  if constexpr (Arithmetic<T>) {
    if (!has_fractions<T>) return __is_same(T, bool) ? kIsStored : kIsStored | kIsIntegral;
  }
  return kIsStored | kIsFloating;
}
inline constexpr ScalarTypeTable make_scalar_type_table() {
  ScalarTypeTable table{};
#define LAMELLA_SCALAR_TYPE(cpp, name, number, text, ...) \
  table.bytes[number] = sizeof(cpp);                      \
  table.traits[number] = traits_of<cpp>() | traits_of_name(#text);
#define LAMELLA_SCALAR_NAME(name, number, text, size) \
  table.bytes[number] = size;                         \
  table.traits[number] = traits_of_name(#text);
#include "lamella/core/scalar_type.def"
  return table;
}
LAMELLA_HIDDEN inline constexpr ScalarTypeTable kScalarTypeTable = make_scalar_type_table();
inline constexpr uint8_t scalar_traits(ScalarType type) {
  return kScalarTypeTable.traits[static_cast<uint8_t>(type) & 63];
}
}  // namespace detail

// Bytes of one element; 0 for Undefined.
inline constexpr size_t element_size(ScalarType type) {
  return detail::kScalarTypeTable.bytes[static_cast<uint8_t>(type) & 63];
}
// Whether tensors can have this type.
inline constexpr bool is_supported(ScalarType type) {
  return (detail::scalar_traits(type) & detail::kIsStored) != 0;
}
inline constexpr bool is_floating_point(ScalarType type) {
  return (detail::scalar_traits(type) & detail::kIsFloating) != 0;
}
inline constexpr bool is_complex(ScalarType type) {
  return (detail::scalar_traits(type) & detail::kIsComplex) != 0;
}
inline constexpr bool is_integral(ScalarType type, bool include_bool) {
  return (detail::scalar_traits(type) & detail::kIsIntegral) != 0 ||
         (include_bool && type == ScalarType::Bool);
}
inline constexpr bool is_float8(ScalarType type) {
  return (detail::scalar_traits(type) & detail::kIsFloat8) != 0;
}
// uint16, uint32 and uint64: stored and converted, without promotion among integers.
inline constexpr bool is_barebones_unsigned(ScalarType type) {
  return type == ScalarType::UInt16 || type == ScalarType::UInt32 || type == ScalarType::UInt64;
}
inline constexpr bool is_signed_type(ScalarType type) {
  return type != ScalarType::Byte && type != ScalarType::Bool && !is_barebones_unsigned(type);
}

// "Float", "Long", ...
inline constexpr const char* toString(ScalarType type) {
  switch (type) {
#define LAMELLA_SCALAR_TYPE(cpp, name, number, text, ...) \
  case ScalarType::name:                                  \
    return #name;
#define LAMELLA_SCALAR_NAME(name, number, text, bytes) \
  case ScalarType::name:                               \
    return #name;
#include "lamella/core/scalar_type.def"
    default:
      return "UNKNOWN_SCALAR";
  }
}
// "float32", "int64", ...: the name in Python.
inline constexpr const char* dtype_name(ScalarType type) {
  switch (type) {
#define LAMELLA_SCALAR_TYPE(cpp, name, number, text, ...) \
  case ScalarType::name:                                  \
    return #text;
#define LAMELLA_SCALAR_NAME(name, number, text, bytes) \
  case ScalarType::name:                               \
    return #text;
#include "lamella/core/scalar_type.def"
    default:
      return "unknown";
  }
}
// In messages a type has its Python name.
inline void append(std::string& out, ScalarType type) { append(out, dtype_name(type)); }

// The type of the real and imaginary parts; itself for a real type.
inline constexpr ScalarType to_real_type(ScalarType type) {
  switch (type) {
    case ScalarType::ComplexHalf:
      return ScalarType::Half;
    case ScalarType::ComplexFloat:
      return ScalarType::Float;
    case ScalarType::ComplexDouble:
      return ScalarType::Double;
    default:
      return type;
  }
}
// The complex type whose parts hold `type`.
inline ScalarType to_complex_type(ScalarType type) {
  switch (type) {
    case ScalarType::Half:
      return ScalarType::ComplexHalf;
    case ScalarType::BFloat16:  // no complex type has its range but complex64
    case ScalarType::Float:
      return ScalarType::ComplexFloat;
    case ScalarType::Double:
      return ScalarType::ComplexDouble;
    case ScalarType::ComplexHalf:
    case ScalarType::ComplexFloat:
    case ScalarType::ComplexDouble:
      return type;
    default:
      break;
  }
  detail::throw_printf(LAMELLA_TYPE_ERROR,
                       "to_complex_type: expected a floating-point type, got %s", dtype_name(type));
}

namespace detail {
[[noreturn]] LAMELLA_COLD inline void throw_no_promotion(ScalarType a, ScalarType b) {
  throw_printf(LAMELLA_ERROR, "promote_types: expected types with a common type, got %s and %s",
               dtype_name(a), dtype_name(b));
}
}  // namespace detail

// The smallest type that both convert to without losing range, as PyTorch defines it. Undefined
// with anything is Undefined. Throws where PyTorch has no rule: float8 with others, and
// uint16/32/64 with anything but real floating point.
inline ScalarType promote_types(ScalarType a, ScalarType b) {
  if (a == b) return a;
  if (a == ScalarType::Undefined || b == ScalarType::Undefined) return ScalarType::Undefined;
  if (!is_supported(a) || !is_supported(b) || is_float8(a) || is_float8(b)) {
    detail::throw_no_promotion(a, b);
  }
  if (is_barebones_unsigned(a) || is_barebones_unsigned(b)) {
    if (is_floating_point(a)) return a;
    if (is_floating_point(b)) return b;
    detail::throw_no_promotion(a, b);
  }
  if (is_complex(a) || is_complex(b)) {
    auto part_bytes = [](ScalarType t) -> size_t {
      if (t == ScalarType::BFloat16) return 4;
      if (is_complex(t)) return element_size(t) / 2;
      return is_floating_point(t) ? element_size(t) : 0;
    };
    size_t bytes = part_bytes(a) > part_bytes(b) ? part_bytes(a) : part_bytes(b);
    return bytes == 8   ? ScalarType::ComplexDouble
           : bytes == 4 ? ScalarType::ComplexFloat
                        : ScalarType::ComplexHalf;
  }
  bool float_a = is_floating_point(a), float_b = is_floating_point(b);
  if (float_a != float_b) return float_a ? a : b;
  if (float_a) {  // float16 with bfloat16 needs float32
    if (element_size(a) == element_size(b)) return ScalarType::Float;
    return element_size(a) > element_size(b) ? a : b;
  }
  if (a == ScalarType::Bool) return b;
  if (b == ScalarType::Bool) return a;
  if (element_size(a) == 1 && element_size(b) == 1) return ScalarType::Short;  // uint8 with int8
  return element_size(a) > element_size(b) ? a : b;
}

// Whether a result of type `from` may be written to a tensor of type `to`: complex does not go to
// real, floating point not to integers, and nothing but bool to bool.
inline constexpr bool can_cast(ScalarType from, ScalarType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating_point(from) && is_integral(to, false)) return false;
  return from == ScalarType::Bool || to != ScalarType::Bool;
}

}  // namespace lamella
