// AT_DISPATCH_…: calls a generic lambda with the tensor's element type as scalar_t (and as index_t
// for index types).
#pragma once
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include "lamella/core/visit_dtype.h"

// The macros find the dtype through a function of this name, which packages use in copies of them.
namespace detail {
inline c10::ScalarType scalar_type(c10::ScalarType type) { return type; }
}  // namespace detail

#define AT_PRIVATE_CASE_TYPE_USING_HINT(type, hint, ...)                 \
  case type: {                                                           \
    using hint [[maybe_unused]] = ::lamella::ScalarTypeToCppTypeT<type>; \
    return __VA_ARGS__();                                                \
  }
#define AT_DISPATCH_CASE(type, ...) AT_PRIVATE_CASE_TYPE_USING_HINT(type, scalar_t, __VA_ARGS__)
#define AT_DISPATCH_INDEX_CASE(type, ...)                                    \
  case type: {                                                               \
    using scalar_t [[maybe_unused]] = ::lamella::ScalarTypeToCppTypeT<type>; \
    using index_t [[maybe_unused]] = scalar_t;                               \
    return __VA_ARGS__();                                                    \
  }
// AT_DISPATCH_SWITCH(type, "operator", cases): NotImplementedError if no case matches.
#define AT_DISPATCH_SWITCH(type, name, ...)                        \
  [&] {                                                            \
    const ::lamella::ScalarType lamella_switch_type = (type);      \
    switch (lamella_switch_type) {                                 \
      __VA_ARGS__                                                  \
      default:                                                     \
        ::lamella::detail::throw_dtype(name, lamella_switch_type); \
    }                                                              \
  }()

// The cases for each group of types, and for further types.
#define LAMELLA_CASES1(group, t1, ...) \
  AT_DISPATCH_CASE_##group(__VA_ARGS__) AT_DISPATCH_CASE(t1, __VA_ARGS__)
#define LAMELLA_CASES2(group, t1, t2, ...) \
  LAMELLA_CASES1(group, t1, __VA_ARGS__) AT_DISPATCH_CASE(t2, __VA_ARGS__)
#define LAMELLA_CASES3(group, t1, t2, t3, ...) \
  LAMELLA_CASES2(group, t1, t2, __VA_ARGS__) AT_DISPATCH_CASE(t3, __VA_ARGS__)
#define LAMELLA_CASES4(group, t1, t2, t3, t4, ...) \
  LAMELLA_CASES3(group, t1, t2, t3, __VA_ARGS__) AT_DISPATCH_CASE(t4, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES(...)                   \
  AT_DISPATCH_CASE(::lamella::ScalarType::Double, __VA_ARGS__) \
  AT_DISPATCH_CASE(::lamella::ScalarType::Float, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND(...) LAMELLA_CASES1(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND2(...) LAMELLA_CASES2(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND3(...) LAMELLA_CASES3(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(...) \
  AT_DISPATCH_CASE_FLOATING_TYPES_AND(::lamella::ScalarType::Half, __VA_ARGS__)
#define AT_DISPATCH_CASE_COMPLEX_TYPES(...)                           \
  AT_DISPATCH_CASE(::lamella::ScalarType::ComplexDouble, __VA_ARGS__) \
  AT_DISPATCH_CASE(::lamella::ScalarType::ComplexFloat, __VA_ARGS__)
#define AT_DISPATCH_CASE_COMPLEX_TYPES_AND(...) LAMELLA_CASES1(COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)           \
  AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND(...) \
  LAMELLA_CASES1(FLOATING_AND_COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND1(...) \
  LAMELLA_CASES1(FLOATING_AND_COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND2(...) \
  LAMELLA_CASES2(FLOATING_AND_COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND3(...) \
  LAMELLA_CASES3(FLOATING_AND_COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)                 \
  AT_DISPATCH_CASE(::lamella::ScalarType::Byte, __VA_ARGS__) \
  AT_DISPATCH_CASE(::lamella::ScalarType::Char, __VA_ARGS__) \
  AT_DISPATCH_CASE(::lamella::ScalarType::Int, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::lamella::ScalarType::Long, __VA_ARGS__) \
  AT_DISPATCH_CASE(::lamella::ScalarType::Short, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES_AND(...) LAMELLA_CASES1(INTEGRAL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...)        \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND(...) LAMELLA_CASES1(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND2(...) LAMELLA_CASES2(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND3(...) LAMELLA_CASES3(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(...) \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)           \
  AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND(...) \
  LAMELLA_CASES1(ALL_TYPES_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND2(...) \
  LAMELLA_CASES2(ALL_TYPES_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND3(...) \
  LAMELLA_CASES3(ALL_TYPES_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND4(...) \
  LAMELLA_CASES4(ALL_TYPES_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_CASE_INDEX_TYPES(...)                         \
  AT_DISPATCH_INDEX_CASE(::lamella::ScalarType::Int, __VA_ARGS__) \
  AT_DISPATCH_INDEX_CASE(::lamella::ScalarType::Long, __VA_ARGS__)

// AT_DISPATCH_GROUP(type, "operator", [&] { ... scalar_t ... }); further types come first.
#define LAMELLA_DISPATCH(group, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_##group(__VA_ARGS__))
#define LAMELLA_DISPATCH1(group, t1, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, LAMELLA_CASES1(group, t1, __VA_ARGS__))
#define LAMELLA_DISPATCH2(group, t1, t2, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, LAMELLA_CASES2(group, t1, t2, __VA_ARGS__))
#define LAMELLA_DISPATCH3(group, t1, t2, t3, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, LAMELLA_CASES3(group, t1, t2, t3, __VA_ARGS__))
#define LAMELLA_DISPATCH4(group, t1, t2, t3, t4, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, LAMELLA_CASES4(group, t1, t2, t3, t4, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES(...) LAMELLA_DISPATCH(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(...) LAMELLA_DISPATCH1(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(...) LAMELLA_DISPATCH2(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND3(...) LAMELLA_DISPATCH3(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(...) \
  LAMELLA_DISPATCH(FLOATING_TYPES_AND_HALF, __VA_ARGS__)
#define AT_DISPATCH_COMPLEX_TYPES(...) LAMELLA_DISPATCH(COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_COMPLEX_TYPES_AND(...) LAMELLA_DISPATCH1(COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(...) \
  LAMELLA_DISPATCH(FLOATING_AND_COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND(...) \
  LAMELLA_DISPATCH1(FLOATING_AND_COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND1(...) \
  LAMELLA_DISPATCH1(FLOATING_AND_COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(...) \
  LAMELLA_DISPATCH2(FLOATING_AND_COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND3(...) \
  LAMELLA_DISPATCH3(FLOATING_AND_COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES(...) LAMELLA_DISPATCH(INTEGRAL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES_AND(...) LAMELLA_DISPATCH1(INTEGRAL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES(...) LAMELLA_DISPATCH(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND(...) LAMELLA_DISPATCH1(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND2(...) LAMELLA_DISPATCH2(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND3(...) LAMELLA_DISPATCH3(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX(...) LAMELLA_DISPATCH(ALL_TYPES_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND(...) \
  LAMELLA_DISPATCH1(ALL_TYPES_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(...) \
  LAMELLA_DISPATCH2(ALL_TYPES_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(...) \
  LAMELLA_DISPATCH3(ALL_TYPES_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(...) \
  LAMELLA_DISPATCH4(ALL_TYPES_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_INDEX_TYPES(...) LAMELLA_DISPATCH(INDEX_TYPES, __VA_ARGS__)

// The headers that need no library have these macros under names of their own.
#define THO_DISPATCH_SWITCH(type, name, ...) AT_DISPATCH_SWITCH(type, name, __VA_ARGS__)
#define THO_DISPATCH_CASE(type, ...) AT_DISPATCH_CASE(type, __VA_ARGS__)
