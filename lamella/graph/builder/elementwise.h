// Functions of the builder on each element. Source: XLA's operation semantics.
//
// Note [Implicit broadcasting]
//   Two operands of one rank may differ in dimensions where one has size 1, which is repeated. A
//   scalar goes with anything. Otherwise `broadcast_dimensions` says which dimension of the operand
//   of the higher rank each dimension of the other one matches, in ascending order.
#pragma once
#include "lamella/graph/builder/op.h"
#include "lamella/graph/builder/types.h"

namespace lamella::hlo {

// The functions of the column `builder` of lamella/graph/hlo/opcode.def, each the opcode of its
// row: Exp(x) is exponential, Sub(lhs, rhs) is subtract. Two operands have one element type.
#define LAMELLA_BUILDER_Unary(Name, ...) Op Name(Operand x);
#define LAMELLA_BUILDER_Binary(Name, ...) \
  Op Name(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
#define LAMELLA_BUILDER_None
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, rule, work, traffic, code, \
                           weight, complex, emitted, same, combines, effects, builder)            \
  LAMELLA_BUILDER_##builder
#include "lamella/graph/hlo/opcode.def"
#undef LAMELLA_BUILDER_Unary
#undef LAMELLA_BUILDER_Binary
#undef LAMELLA_BUILDER_None

// Pred. Without a type: total order for none, integers by their sign.
Op Compare(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions, ComparisonDirection direction);
Op Compare(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions, ComparisonDirection direction,
           Comparison::Type compare_type);
Op Compare(Operand lhs, Op rhs, ComparisonDirection direction);
Op Eq(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op Ne(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op Ge(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op Gt(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op Le(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op Lt(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
// Floating-point numbers are ordered -NaN < -infinity < ... < -0 < +0 < ... < infinity < NaN.
Op EqTotalOrder(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op NeTotalOrder(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op GeTotalOrder(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op GtTotalOrder(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op LeTotalOrder(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op LtTotalOrder(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});

// The complex conjugate; a real operand is returned as it is.
Op Conj(Operand x);
Op Square(Operand x);
Op Reciprocal(Operand x);
// Pred, of floating-point numbers.
Op IsInf(Operand x);
Op IsPosInf(Operand x);
Op IsNegInf(Operand x);
Op IsNan(Operand x);
Op IsNegZero(Operand x);

// To another element type, by value.
Op ConvertElementType(Operand operand, PrimitiveType new_element_type);
// To another element type, by bits. A wider type joins the last dimension, a narrower one adds one.
Op BitcastConvertType(Operand operand, PrimitiveType new_element_type);
// Rounds to a format of so many bits, in the type that it has.
Op ReducePrecision(Operand operand, int exponent_bits, int mantissa_bits);

// on_true where pred, otherwise on_false. `pred` may be a scalar; either value may be one too.
Op Select(Operand pred, Op on_true, Op on_false);
// min(max(min, operand), max). Bounds may be scalars.
Op Clamp(Operand min, Op operand, Op max);

// Operators.
Op operator-(Operand x);
Op operator~(Operand x);
Op operator+(Operand x, Op y);
Op operator-(Operand x, Op y);
Op operator*(Operand x, Op y);
Op operator/(Operand x, Op y);
Op operator%(Operand x, Op y);
Op operator&(Operand x, Op y);
Op operator|(Operand x, Op y);
Op operator^(Operand x, Op y);
Op operator<<(Operand x, Op y);
// An arithmetic shift for signed integers, a logical one for others.
Op operator>>(Operand x, Op y);

}  // namespace lamella::hlo
