// Constants of each element type (XLA's client/lib/constants.h). ScalarLike and FullLike are in
// builder/constant.h.
#pragma once
#include "lamella/graph/builder/constant.h"

namespace lamella::hlo {

// Scalars.
Op Zero(Within builder, PrimitiveType type);
Op One(Within builder, PrimitiveType type);
Op MinValue(Within builder, PrimitiveType type);
Op MinFiniteValue(Within builder, PrimitiveType type);
Op MaxValue(Within builder, PrimitiveType type);
Op MaxFiniteValue(Within builder, PrimitiveType type);
Op NanValue(Within builder, PrimitiveType type);
// The distance from 1 to the next number, for F16, BF16, F32 and F64.
Op Epsilon(Within builder, PrimitiveType type);

// Arrays and tuples of arrays.
Op Zeros(Within builder, const Shape& shape);
Op ZerosLike(Operand prototype);

}  // namespace lamella::hlo
