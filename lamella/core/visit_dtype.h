// From a dtype known at run time to a C++ type: visit_*(dtype, op, f) calls f(TypeTag<T>()) and
// returns what that returns. Throws NotImplementedError, whose text begins with `op`, for a dtype
// outside the visitor's group.
//
//   visit_floating(x.scalar_type(), "squareplus", [&](auto tag) {
//     using T = type_of<decltype(tag)>;
//     ...
//   });
#pragma once
#include "lamella/core/scalar_type.h"

namespace lamella {

template <class T>
struct TypeTag {
  using type = T;
};
template <class Tag>
using type_of = typename std::decay_t<Tag>::type;

// The type through which a bool is read: any byte other than 0 is true, because the memory may have
// been written as another type.
struct StoredBool {
  uint8_t byte;
  operator bool() const { return byte != 0; }
};
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, StoredBool, T>;

namespace detail {
[[noreturn]] LAMELLA_COLD inline void throw_dtype(const char* op, ScalarType dtype) {
  throw NotImplementedError(str(op, ": expected a dtype that it has a kernel for, got ", dtype));
}
}  // namespace detail

#define LAMELLA_VISIT(type, name) \
  case ScalarType::name:          \
    return f(TypeTag<type>());

// bool, all integers with arithmetic, and uint16/32/64 excluded.
#define LAMELLA_VISIT_INTEGERS  \
  LAMELLA_VISIT(uint8_t, Byte)  \
  LAMELLA_VISIT(int8_t, Char)   \
  LAMELLA_VISIT(int16_t, Short) \
  LAMELLA_VISIT(int32_t, Int)   \
  LAMELLA_VISIT(int64_t, Long)
#define LAMELLA_VISIT_FLOATS  \
  LAMELLA_VISIT(float, Float) \
  LAMELLA_VISIT(double, Double)
#define LAMELLA_VISIT_REDUCED \
  LAMELLA_VISIT(Half, Half)   \
  LAMELLA_VISIT(BFloat16, BFloat16)
#define LAMELLA_VISIT_COMPLEX                 \
  LAMELLA_VISIT(complex<float>, ComplexFloat) \
  LAMELLA_VISIT(complex<double>, ComplexDouble)

// Every type that tensors can have.
template <class F>
decltype(auto) visit_stored(ScalarType dtype, const char* op, F&& f) {
  switch (dtype) {
#define LAMELLA_SCALAR_TYPE(type, name, number, text, ...) LAMELLA_VISIT(type, name)
#include "lamella/core/scalar_type.def"
    default:
      detail::throw_dtype(op, dtype);
  }
}
// bool, integers, floating point, complex.
template <class F>
decltype(auto) visit_all(ScalarType dtype, const char* op, F&& f) {
  switch (dtype) {
    LAMELLA_VISIT(bool, Bool)
    LAMELLA_VISIT_INTEGERS
    LAMELLA_VISIT_FLOATS
    LAMELLA_VISIT_REDUCED
    LAMELLA_VISIT_COMPLEX
    default:
      detail::throw_dtype(op, dtype);
  }
}
// Integers, floating point, complex.
template <class F>
decltype(auto) visit_numbers(ScalarType dtype, const char* op, F&& f) {
  switch (dtype) {
    LAMELLA_VISIT_INTEGERS
    LAMELLA_VISIT_FLOATS
    LAMELLA_VISIT_REDUCED
    LAMELLA_VISIT_COMPLEX
    default:
      detail::throw_dtype(op, dtype);
  }
}
// bool, integers, floating point.
template <class F>
decltype(auto) visit_real(ScalarType dtype, const char* op, F&& f) {
  switch (dtype) {
    LAMELLA_VISIT(bool, Bool)
    LAMELLA_VISIT_INTEGERS
    LAMELLA_VISIT_FLOATS
    LAMELLA_VISIT_REDUCED
    default:
      detail::throw_dtype(op, dtype);
  }
}
template <class F>
decltype(auto) visit_floating(ScalarType dtype, const char* op, F&& f) {
  switch (dtype) {
    LAMELLA_VISIT_FLOATS
    LAMELLA_VISIT_REDUCED
    default:
      detail::throw_dtype(op, dtype);
  }
}
template <class F>
decltype(auto) visit_index(ScalarType dtype, const char* op, F&& f) {
  switch (dtype) {
    LAMELLA_VISIT(int32_t, Int)
    LAMELLA_VISIT(int64_t, Long)
    default:
      detail::throw_dtype(op, dtype);
  }
}

// For kernels that only move elements: one type for each element size.
struct Bytes16 {
  uint64_t word[2];
};
template <class F>
decltype(auto) visit_bytes(size_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(TypeTag<uint8_t>());
    case 2:
      return f(TypeTag<uint16_t>());
    case 4:
      return f(TypeTag<uint32_t>());
    case 8:
      return f(TypeTag<uint64_t>());
    default:
      return f(TypeTag<Bytes16>());
  }
}

#undef LAMELLA_VISIT
#undef LAMELLA_VISIT_INTEGERS
#undef LAMELLA_VISIT_FLOATS
#undef LAMELLA_VISIT_REDUCED
#undef LAMELLA_VISIT_COMPLEX

// The type to compute in: float for the small ones.
template <class T>
using compute_type = std::conditional_t<detail::is_small_float_v<T>, float, T>;

}  // namespace lamella
