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

// Binary operations; the operands must have equal element types.
Op Add(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op Sub(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op Mul(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op Div(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op Rem(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op Max(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op Min(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op And(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op Or(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op Xor(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op ShiftLeft(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op ShiftRightArithmetic(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op ShiftRightLogical(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op Atan2(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op Pow(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});
Op Complex(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions = {});

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

// Unary operations.
Op Abs(Operand x);  // The magnitude; real even for complex numbers.
Op Exp(Operand x);
Op Expm1(Operand x);  // exp(x) - 1.
Op Floor(Operand x);
Op Ceil(Operand x);
Op Round(Operand x);             // Halves away from zero.
Op RoundNearestEven(Operand x);  // Halves to the even neighbour.
Op Log(Operand x);
Op Log1p(Operand x);  // log(1 + x).
Op Sign(Operand x);
Op Clz(Operand x);  // The number of leading zero bits.
Op Cos(Operand x);
Op Sin(Operand x);
Op Tan(Operand x);
Op Tanh(Operand x);
Op Logistic(Operand x);  // 1 / (1 + exp(-x)).
Op Real(Operand x);      // Parts of complex numbers.
Op Imag(Operand x);
Op Sqrt(Operand x);
Op Rsqrt(Operand x);
Op Cbrt(Operand x);
Op IsFinite(Operand x);  // Pred: neither an infinity nor NaN.
Op Neg(Operand x);
Op Not(Operand x);  // Negates pred, or each bit.
Op PopulationCount(Operand x);
Op Erf(Operand x);
Op Copy(Operand x);
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
