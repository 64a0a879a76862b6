// Builder functions for constants and parameters. Source: XLA's operation semantics.
#pragma once
#include "lamella/graph/builder/literal_util.h"
#include "lamella/graph/builder/op.h"
#include "lamella/graph/builder/types.h"

namespace lamella::hlo {

// Parameter numbers start at 0. Each is made once, in any order.
Op Parameter(Within builder, int64_t parameter_number, const Shape& shape, std::string_view name);
// The same in the builder that this thread made last (Builder::latest).
Op Parameter(int64_t parameter_number, const Shape& shape, std::string_view name,
             Where where = std::source_location::current());

// A constant array or tuple of arrays. The literal is copied.
Op ConstantLiteral(Within builder, const Literal& literal);
template <class T>
Op ConstantR0(Within builder, T value) {
  return ConstantLiteral(builder, LiteralUtil::CreateR0<T>(value));
}
template <class T>
Op ConstantR1(Within builder, Span<T> values) {
  return ConstantLiteral(builder, LiteralUtil::CreateR1<T>(values));
}
template <class T>
Op ConstantR1(Within builder, int64_t length, T value) {
  std::vector<int64_t> sizes{length};
  return ConstantLiteral(builder, LiteralUtil::CreateFullWithDescendingLayout<T>(sizes, value));
}
template <class T>
Op ConstantR2(Within builder, std::initializer_list<std::initializer_list<T>> values) {
  return ConstantLiteral(builder, LiteralUtil::CreateR2<T>(values));
}
template <class T>
Op ConstantR3(Within builder,
              std::initializer_list<std::initializer_list<std::initializer_list<T>>> values) {
  return ConstantLiteral(builder, LiteralUtil::CreateR3<T>(values));
}
template <class T>
Op ConstantR4(
    Within builder,
    std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>>
        values) {
  return ConstantLiteral(builder, LiteralUtil::CreateR4<T>(values));
}
template <class T>
Op ConstantFromArray(Within builder, const Array<T>& values) {
  return ConstantLiteral(builder, LiteralUtil::CreateFromArray(values));
}
template <class T>
Op ConstantR2FromArray2D(Within builder, const Array2D<T>& values) {
  return ConstantFromArray<T>(builder, values);
}
template <class T>
Op ConstantR3FromArray3D(Within builder, const Array3D<T>& values) {
  return ConstantFromArray<T>(builder, values);
}
template <class T>
Op ConstantR4FromArray4D(Within builder, const Array4D<T>& values) {
  return ConstantFromArray<T>(builder, values);
}

// A scalar of a type that is known only at run time.
Op ConstantR0WithType(Within builder, PrimitiveType type, Number value);
// A scalar of the prototype's element type.
Op ScalarLike(Operand prototype, Number value);
// An array of the prototype's shape.
Op FullLike(Operand prototype, Number value);

// 0, 1, 2, ... along a dimension.
Op Iota(Within builder, const Shape& shape, int64_t iota_dimension);
Op Iota(Within builder, PrimitiveType type, int64_t size);

}  // namespace lamella::hlo
