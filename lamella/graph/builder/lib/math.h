// Elementwise functions composed of others (XLA's client/lib/math.h). The rest of XLA's header is
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
// Rounds to the nearest integer, halves to even.
Op RoundToEven(Operand x);
// The complex conjugate if `conjugate`, otherwise x.
Op MaybeConjugate(Operand x, bool conjugate);
// Special functions of real floats. They are custom calls of Lamella's operators.
Op Erfc(Operand x);
Op ErfInv(Operand x);
Op Lgamma(Operand x);
Op Digamma(Operand x);
Op BesselI0e(Operand x);
Op BesselI1e(Operand x);
// The lower and upper regularised incomplete gamma functions, and Hurwitz's zeta function.
Op Igamma(Operand a, Op x);
Op Igammac(Operand a, Op x);
Op Zeta(Operand x, Op q);
// The next floating-point number after `from` towards `to`, for F16, BF16, F32 and F64.
Op NextAfter(Operand from, Op to);

}  // namespace lamella::hlo
