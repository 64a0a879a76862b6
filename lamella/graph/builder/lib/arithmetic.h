// Small computations of two scalars, and reductions with them (XLA's client/lib/arithmetic.h).
#pragma once
#include "lamella/graph/builder/builder.h"

namespace lamella::hlo {

// (x, y) -> x op y for scalars of the type. `builder` is the one that will use it.
BuiltComputation CreateScalarAddComputation(PrimitiveType type, Builder* builder);
BuiltComputation CreateScalarMultiplyComputation(PrimitiveType type, Builder* builder);
BuiltComputation CreateScalarGeComputation(PrimitiveType type, Builder* builder);
BuiltComputation CreateScalarMaxComputation(PrimitiveType type, Builder* builder);
BuiltComputation CreateScalarMinComputation(PrimitiveType type, Builder* builder);
BuiltComputation CreateScalarAndComputation(PrimitiveType type, Builder* builder);
BuiltComputation CreateScalarOrComputation(PrimitiveType type, Builder* builder);
// (x, y) -> y: what a scatter needs that only sets.
BuiltComputation CreateScalarIdentityWithZeroComputation(PrimitiveType type, Builder* builder);

// Pred: whether any element is true.
Op Any(Operand predicates);
// The place of the first largest (smallest) element along an axis, as integers of the output type.
Op ArgMax(Operand input, PrimitiveType output_type, int axis);
Op ArgMin(Operand input, PrimitiveType output_type, int axis);

}  // namespace lamella::hlo
