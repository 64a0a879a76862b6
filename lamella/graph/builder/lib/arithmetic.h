// Small computations of two scalars, and reductions with them (XLA's client/lib/arithmetic.h).
#pragma once
#include "lamella/graph/builder/builder.h"

namespace lamella::hlo {

// The reducer (x, y) -> x op y on scalars of the type. `builder` is the builder that will use it.
BuiltComputation CreateScalarAddComputation(PrimitiveType type, Builder* builder);
BuiltComputation CreateScalarMultiplyComputation(PrimitiveType type, Builder* builder);
BuiltComputation CreateScalarGeComputation(PrimitiveType type, Builder* builder);
BuiltComputation CreateScalarMaxComputation(PrimitiveType type, Builder* builder);
BuiltComputation CreateScalarMinComputation(PrimitiveType type, Builder* builder);
BuiltComputation CreateScalarAndComputation(PrimitiveType type, Builder* builder);
BuiltComputation CreateScalarOrComputation(PrimitiveType type, Builder* builder);
// (x, y) -> y: the combiner of a scatter that overwrites elements.
BuiltComputation CreateScalarIdentityWithZeroComputation(PrimitiveType type, Builder* builder);

// True if any element is true, as a Pred.
Op Any(Operand predicates);
// The index of the first largest (smallest) element along an axis, in the output type.
Op ArgMax(Operand input, PrimitiveType output_type, int axis);
Op ArgMin(Operand input, PrimitiveType output_type, int axis);
Op ArgMinMax(Operand input, PrimitiveType output_type, int axis, bool is_min);

}  // namespace lamella::hlo
