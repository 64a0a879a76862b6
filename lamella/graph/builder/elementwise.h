// Builder functions for elementwise operations. Source: XLA's operation semantics.
//
// Note [Implicit broadcasting]
//   Two operands of equal rank may differ in a dimension if one of them has size 1, which is
//   repeated. A scalar combines with any operand. Otherwise `broadcast_dimensions` lists, in
//   ascending order, the dimension of the operand of higher rank that each dimension of the other
//   operand matches.
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

// Returns Pred. Without a type, floating-point numbers are compared by IEEE 754 rules, not in total
// order, and integers by their signedness.
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
// Comparisons in total order: -NaN < -infinity < ... < -0 < +0 < ... < infinity < NaN.
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
// These return Pred and take floating-point numbers.
Op IsInf(Operand x);
Op IsPosInf(Operand x);
Op IsNegInf(Operand x);
Op IsNan(Operand x);
Op IsNegZero(Operand x);

// Converts values to another element type.
Op ConvertElementType(Operand operand, PrimitiveType new_element_type);
// Reinterprets bits as another element type. A wider type absorbs the last dimension, a narrower
// one appends a dimension.
Op BitcastConvertType(Operand operand, PrimitiveType new_element_type);
// Rounds to a format with these numbers of bits; the element type stays the same.
Op ReducePrecision(Operand operand, int exponent_bits, int mantissa_bits);

// on_true where pred is true, otherwise on_false. Each of the three may be a scalar.
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
// An arithmetic shift for signed integers, a logical shift for other types.
Op operator>>(Operand x, Op y);

}  // namespace lamella::hlo
