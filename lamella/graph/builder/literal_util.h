// LiteralUtil: literals from C++ values (names are XLA's).
#pragma once
#include <cstring>
#include <utility>
#include <vector>

#include "lamella/graph/builder/array.h"
#include "lamella/graph/builder/op.h"
#include "lamella/graph/builder/status.h"
#include "lamella/graph/builder/types.h"
#include "lamella/graph/hlo/literal.h"
#include "lamella/graph/hlo/native_type.h"

namespace lamella::hlo {

// A C++ number that will be converted to an element type known only at run time.
struct Number {
  int64_t integer = 0;
  complex<double> inexact;
  bool is_integer = false;
  template <class T>
  Number(T value) {  // NOLINT
    constexpr ElementType kType = NativeToPrimitiveType<T>();
    if constexpr (std::is_integral_v<T>) {
      is_integer = true;
      integer = static_cast<int64_t>(value);
      inexact = static_cast<double>(value);
    } else if constexpr (kType == ElementType::C64 || kType == ElementType::C128) {
      inexact = complex<double>(value.real(), value.imag());
    } else {
      inexact = static_cast<double>(static_cast<float>(value));
      if constexpr (kType == ElementType::F64) inexact = value;
    }
  }
};
// A scalar of the element type: real numbers are rounded, integers truncated to the type's bits.
Literal scalar_literal(ElementType type, Number value);

class LiteralUtil {
 public:
  LiteralUtil() = delete;

  template <class T>
  static Literal CreateR0(T value) {
    return Create<T>({}, std::span<const T>(&value, 1));
  }
  template <class T>
  static Literal CreateR1(Span<T> values) {
    return Create<T>({static_cast<int64_t>(values.size())}, values);
  }
  template <class T>
  static Literal CreateR2(std::initializer_list<std::initializer_list<T>> values) {
    return CreateFromArray(Array<T>(values));
  }
  template <class T>
  static Literal CreateR3(
      std::initializer_list<std::initializer_list<std::initializer_list<T>>> values) {
    return CreateFromArray(Array<T>(values));
  }
  template <class T>
  static Literal CreateR4(
      std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>>
          values) {
    return CreateFromArray(Array<T>(values));
  }
  template <class T>
  static Literal CreateFromArray(const Array<T>& array) {
    return Create<T>(array.dimensions(), array.values());
  }
  template <class T>
  static Literal CreateR2FromArray2D(const Array2D<T>& array) {
    return CreateFromArray(array);
  }
  template <class T>
  static Literal CreateR3FromArray3D(const Array3D<T>& array) {
    return CreateFromArray(array);
  }
  template <class T>
  static Literal CreateR4FromArray4D(const Array4D<T>& array) {
    return CreateFromArray(array);
  }
  // The bytes of a text, as U8.
  static Literal CreateR1U8(std::string_view value);
  // `count` evenly spaced values from `from` to `to`.
  static Literal CreateR1FromRange(double from, double to, int64_t count);
  // An array of these dimensions filled with `value`.
  template <class T>
  static Literal CreateFullWithDescendingLayout(Span<int64_t> dimensions, T value) {
    std::vector<T> values(static_cast<size_t>(Shape::array(NativeToPrimitiveType<T>(),
                                                           {dimensions.begin(), dimensions.end()})
                                                  .elements()),
                          value);
    return Create<T>({dimensions.begin(), dimensions.end()}, std::span<const T>(values));
  }

  // Scalars of a type that is known only at run time.
  static Literal Zero(PrimitiveType type) { return scalar_literal(type, 0); }
  static Literal One(PrimitiveType type) { return scalar_literal(type, 1); }
  // The smallest and largest values: the infinities for floating-point types that have them.
  static Literal MinValue(PrimitiveType type);
  static Literal MaxValue(PrimitiveType type);
  static Literal MinFiniteValue(PrimitiveType type);
  static Literal MaxFiniteValue(PrimitiveType type);
  static StatusOr<Literal> NanValue(PrimitiveType type);
  static Literal CreateFromDimensions(PrimitiveType type, Span<int64_t> dimensions) {
    return Literal(Shape::array(type, {dimensions.begin(), dimensions.end()}));
  }

  // A tuple of copies of the elements.
  static Literal MakeTuple(Span<const Literal*> elements);
  static Literal MakeTupleFromSlices(std::span<const Literal> elements);
  // A tuple that takes over the elements.
  static Literal MakeTupleOwned(std::vector<Literal> elements) {
    return Literal::tuple(std::move(elements));
  }
  template <class... L>
  static Literal MakeTupleOwned(Literal first, L... others) {
    std::vector<Literal> elements;
    elements.push_back(std::move(first));
    (elements.push_back(std::move(others)), ...);
    return Literal::tuple(std::move(elements));
  }
  static Literal CreateToken();

  // Converts floating-point and integral values as ConvertElementType does.
  static StatusOr<Literal> Convert(const Literal& literal, PrimitiveType type);

 private:
  template <class T>
  static Literal Create(std::vector<int64_t> sizes, std::span<const T> values) {
    Literal literal(Shape::array(NativeToPrimitiveType<T>(), std::move(sizes)));
    if (!values.empty()) std::memcpy(literal.data(), values.data(), values.size_bytes());
    return literal;
  }
};

}  // namespace lamella::hlo
