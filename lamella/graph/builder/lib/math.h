// Functions on each element that others make up (XLA's client/lib/math.h). More of that header is
// in builder/elementwise.h.
#pragma once
#include "lamella/graph/builder/elementwise.h"

namespace lamella::hlo {

Op Acos(Operand x);
Op Asin(Operand x);
Op Atan(Operand x);
Op Sinh(Operand x);
Op Cosh(Operand x);
Op Asinh(Operand x);
Op Acosh(Operand x);
Op Atanh(Operand x);
// Halves to even.
Op RoundToEven(Operand x);
// The conjugate if asked for.
Op MaybeConjugate(Operand x, bool conjugate);
// The next floating-point number after `from` towards `to`; F16, BF16, F32, F64.
Op NextAfter(Operand from, Op to);

}  // namespace lamella::hlo
