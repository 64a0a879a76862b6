// LAMELLA_DISPATCH_…: runs a generic lambda for an element type that is known at run time. Inside
// the lambda, scalar_t is the C++ type (index_t as well, where the types are those of indices).
#pragma once
#include "lamella/core/scalar_type.h"

namespace lamella::detail {
[[noreturn]] LAMELLA_COLD inline void throw_no_case(const char* name, ScalarType type) {
  throw NotImplementedError(str(name, ": expected a dtype that it is implemented for, got ", type));
}
}  // namespace lamella::detail

#define LAMELLA_DISPATCH_CASE(type, ...)                                     \
  case type: {                                                               \
    using scalar_t [[maybe_unused]] = ::lamella::ScalarTypeToCppTypeT<type>; \
    return __VA_ARGS__();                                                    \
  }
#define LAMELLA_DISPATCH_INDEX_CASE(type, ...)                               \
  case type: {                                                               \
    using scalar_t [[maybe_unused]] = ::lamella::ScalarTypeToCppTypeT<type>; \
    using index_t [[maybe_unused]] = scalar_t;                               \
    return __VA_ARGS__();                                                    \
  }
// LAMELLA_DISPATCH_SWITCH(type, "operator", cases): NotImplementedError where no case fits.
#define LAMELLA_DISPATCH_SWITCH(type, name, ...)                     \
  [&] {                                                              \
    const ::lamella::ScalarType lamella_switch_type = (type);        \
    switch (lamella_switch_type) {                                   \
      __VA_ARGS__                                                    \
      default:                                                       \
        ::lamella::detail::throw_no_case(name, lamella_switch_type); \
    }                                                                \
  }()

// The cases of each group of types.
#define LAMELLA_DISPATCH_CASE_FLOATING_TYPES(...)                   \
  LAMELLA_DISPATCH_CASE(::lamella::ScalarType::Double, __VA_ARGS__) \
  LAMELLA_DISPATCH_CASE(::lamella::ScalarType::Float, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_FLOATING_TYPES_AND(t1, ...) \
  LAMELLA_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)       \
  LAMELLA_DISPATCH_CASE(t1, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_FLOATING_TYPES_AND2(t1, t2, ...) \
  LAMELLA_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)            \
  LAMELLA_DISPATCH_CASE(t1, __VA_ARGS__)                       \
  LAMELLA_DISPATCH_CASE(t2, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_FLOATING_TYPES_AND3(t1, t2, t3, ...) \
  LAMELLA_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)                \
  LAMELLA_DISPATCH_CASE(t1, __VA_ARGS__)                           \
  LAMELLA_DISPATCH_CASE(t2, __VA_ARGS__)                           \
  LAMELLA_DISPATCH_CASE(t3, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(...) \
  LAMELLA_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)        \
  LAMELLA_DISPATCH_CASE(::lamella::ScalarType::Half, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_COMPLEX_TYPES(...)                           \
  LAMELLA_DISPATCH_CASE(::lamella::ScalarType::ComplexDouble, __VA_ARGS__) \
  LAMELLA_DISPATCH_CASE(::lamella::ScalarType::ComplexFloat, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_COMPLEX_TYPES_AND(t1, ...) \
  LAMELLA_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)       \
  LAMELLA_DISPATCH_CASE(t1, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(...)              \
  LAMELLA_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)                        \
  LAMELLA_DISPATCH_CASE(::lamella::ScalarType::ComplexDouble, __VA_ARGS__) \
  LAMELLA_DISPATCH_CASE(::lamella::ScalarType::ComplexFloat, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND(t1, ...) \
  LAMELLA_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)       \
  LAMELLA_DISPATCH_CASE(t1, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND1(t1, ...) \
  LAMELLA_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)        \
  LAMELLA_DISPATCH_CASE(t1, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND2(t1, t2, ...) \
  LAMELLA_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)            \
  LAMELLA_DISPATCH_CASE(t1, __VA_ARGS__)                                   \
  LAMELLA_DISPATCH_CASE(t2, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND3(t1, t2, t3, ...) \
  LAMELLA_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)                \
  LAMELLA_DISPATCH_CASE(t1, __VA_ARGS__)                                       \
  LAMELLA_DISPATCH_CASE(t2, __VA_ARGS__)                                       \
  LAMELLA_DISPATCH_CASE(t3, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_INTEGRAL_TYPES(...)                 \
  LAMELLA_DISPATCH_CASE(::lamella::ScalarType::Byte, __VA_ARGS__) \
  LAMELLA_DISPATCH_CASE(::lamella::ScalarType::Char, __VA_ARGS__) \
  LAMELLA_DISPATCH_CASE(::lamella::ScalarType::Int, __VA_ARGS__)  \
  LAMELLA_DISPATCH_CASE(::lamella::ScalarType::Long, __VA_ARGS__) \
  LAMELLA_DISPATCH_CASE(::lamella::ScalarType::Short, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_INTEGRAL_TYPES_AND(t1, ...) \
  LAMELLA_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__)       \
  LAMELLA_DISPATCH_CASE(t1, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_ALL_TYPES(...)                        \
  LAMELLA_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__)                 \
  LAMELLA_DISPATCH_CASE(::lamella::ScalarType::Double, __VA_ARGS__) \
  LAMELLA_DISPATCH_CASE(::lamella::ScalarType::Float, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_ALL_TYPES_AND(t1, ...) \
  LAMELLA_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)       \
  LAMELLA_DISPATCH_CASE(t1, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_ALL_TYPES_AND2(t1, t2, ...) \
  LAMELLA_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)            \
  LAMELLA_DISPATCH_CASE(t1, __VA_ARGS__)                  \
  LAMELLA_DISPATCH_CASE(t2, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_ALL_TYPES_AND3(t1, t2, t3, ...) \
  LAMELLA_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)                \
  LAMELLA_DISPATCH_CASE(t1, __VA_ARGS__)                      \
  LAMELLA_DISPATCH_CASE(t2, __VA_ARGS__)                      \
  LAMELLA_DISPATCH_CASE(t3, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(...)                   \
  LAMELLA_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)                             \
  LAMELLA_DISPATCH_CASE(::lamella::ScalarType::ComplexDouble, __VA_ARGS__) \
  LAMELLA_DISPATCH_CASE(::lamella::ScalarType::ComplexFloat, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND(t1, ...) \
  LAMELLA_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__)       \
  LAMELLA_DISPATCH_CASE(t1, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND2(t1, t2, ...) \
  LAMELLA_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__)            \
  LAMELLA_DISPATCH_CASE(t1, __VA_ARGS__)                              \
  LAMELLA_DISPATCH_CASE(t2, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND3(t1, t2, t3, ...) \
  LAMELLA_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__)                \
  LAMELLA_DISPATCH_CASE(t1, __VA_ARGS__)                                  \
  LAMELLA_DISPATCH_CASE(t2, __VA_ARGS__)                                  \
  LAMELLA_DISPATCH_CASE(t3, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND4(t1, t2, t3, t4, ...) \
  LAMELLA_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__)                    \
  LAMELLA_DISPATCH_CASE(t1, __VA_ARGS__)                                      \
  LAMELLA_DISPATCH_CASE(t2, __VA_ARGS__)                                      \
  LAMELLA_DISPATCH_CASE(t3, __VA_ARGS__)                                      \
  LAMELLA_DISPATCH_CASE(t4, __VA_ARGS__)
#define LAMELLA_DISPATCH_CASE_INDEX_TYPES(...)                         \
  LAMELLA_DISPATCH_INDEX_CASE(::lamella::ScalarType::Int, __VA_ARGS__) \
  LAMELLA_DISPATCH_INDEX_CASE(::lamella::ScalarType::Long, __VA_ARGS__)

// LAMELLA_DISPATCH_GROUP(type, "operator", [&] { ... scalar_t ... }); further types come first.
#define LAMELLA_DISPATCH_FLOATING_TYPES(type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name, LAMELLA_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define LAMELLA_DISPATCH_FLOATING_TYPES_AND(t1, type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name, LAMELLA_DISPATCH_CASE_FLOATING_TYPES_AND(t1, __VA_ARGS__))
#define LAMELLA_DISPATCH_FLOATING_TYPES_AND2(t1, t2, type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name,                                 \
                          LAMELLA_DISPATCH_CASE_FLOATING_TYPES_AND2(t1, t2, __VA_ARGS__))
#define LAMELLA_DISPATCH_FLOATING_TYPES_AND3(t1, t2, t3, type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name,                                     \
                          LAMELLA_DISPATCH_CASE_FLOATING_TYPES_AND3(t1, t2, t3, __VA_ARGS__))
#define LAMELLA_DISPATCH_FLOATING_TYPES_AND_HALF(type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name, LAMELLA_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(__VA_ARGS__))
#define LAMELLA_DISPATCH_COMPLEX_TYPES(type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name, LAMELLA_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__))
#define LAMELLA_DISPATCH_COMPLEX_TYPES_AND(t1, type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name, LAMELLA_DISPATCH_CASE_COMPLEX_TYPES_AND(t1, __VA_ARGS__))
#define LAMELLA_DISPATCH_FLOATING_AND_COMPLEX_TYPES(type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name, LAMELLA_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__))
#define LAMELLA_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND(t1, type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name,                                        \
                          LAMELLA_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND(t1, __VA_ARGS__))
#define LAMELLA_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND1(t1, type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name,                                         \
                          LAMELLA_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND1(t1, __VA_ARGS__))
#define LAMELLA_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(t1, t2, type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(                                                        \
      type, name, LAMELLA_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND2(t1, t2, __VA_ARGS__))
#define LAMELLA_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND3(t1, t2, t3, type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(                                                            \
      type, name, LAMELLA_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND3(t1, t2, t3, __VA_ARGS__))
#define LAMELLA_DISPATCH_INTEGRAL_TYPES(type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name, LAMELLA_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define LAMELLA_DISPATCH_INTEGRAL_TYPES_AND(t1, type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name, LAMELLA_DISPATCH_CASE_INTEGRAL_TYPES_AND(t1, __VA_ARGS__))
#define LAMELLA_DISPATCH_ALL_TYPES(type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name, LAMELLA_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define LAMELLA_DISPATCH_ALL_TYPES_AND(t1, type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name, LAMELLA_DISPATCH_CASE_ALL_TYPES_AND(t1, __VA_ARGS__))
#define LAMELLA_DISPATCH_ALL_TYPES_AND2(t1, t2, type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name, LAMELLA_DISPATCH_CASE_ALL_TYPES_AND2(t1, t2, __VA_ARGS__))
#define LAMELLA_DISPATCH_ALL_TYPES_AND3(t1, t2, t3, type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name, LAMELLA_DISPATCH_CASE_ALL_TYPES_AND3(t1, t2, t3, __VA_ARGS__))
#define LAMELLA_DISPATCH_ALL_TYPES_AND_COMPLEX(type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name, LAMELLA_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__))
#define LAMELLA_DISPATCH_ALL_TYPES_AND_COMPLEX_AND(t1, type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name,                                   \
                          LAMELLA_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND(t1, __VA_ARGS__))
#define LAMELLA_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(t1, t2, type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name,                                        \
                          LAMELLA_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND2(t1, t2, __VA_ARGS__))
#define LAMELLA_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(t1, t2, t3, type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(                                                       \
      type, name, LAMELLA_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND3(t1, t2, t3, __VA_ARGS__))
#define LAMELLA_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(t1, t2, t3, t4, type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(                                                           \
      type, name, LAMELLA_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND4(t1, t2, t3, t4, __VA_ARGS__))
#define LAMELLA_DISPATCH_INDEX_TYPES(type, name, ...) \
  LAMELLA_DISPATCH_SWITCH(type, name, LAMELLA_DISPATCH_CASE_INDEX_TYPES(__VA_ARGS__))
