// Functions of the builder for random numbers and batch normalisation. Source: XLA's operation
// semantics.
#pragma once
#include "lamella/graph/builder/op.h"
#include "lamella/graph/builder/types.h"
#include "lamella/graph/hlo/shape.h"

namespace lamella::hlo {

// From the interval [a, b), or of integers from a to b - 1. `a` and `b` are scalars of its type.
Op RngUniform(Operand a, Op b, const Shape& shape);
Op RngNormal(Operand mu, Op sigma, const Shape& shape);
// (next state, bits): the same for the same state. States: U64[2] for RNG_THREE_FRY, U64[2] or
// U64[3] for RNG_PHILOX.
Op RngBitGenerator(RandomAlgorithm algorithm, Operand initial_state, const Shape& shape);

// (normalised, mean, variance), means over all dimensions but the one of features. Statistics,
// scale and offset have an element for each feature.
Op BatchNormTraining(Operand operand, Op scale, Op offset, float epsilon, int64_t feature_index);
Op BatchNormInference(Operand operand, Op scale, Op offset, Op mean, Op variance, float epsilon,
                      int64_t feature_index);
// (gradient of the operand, of the scale, of the offset).
Op BatchNormGrad(Operand operand, Op scale, Op batch_mean, Op batch_var, Op grad_output,
                 float epsilon, int64_t feature_index);

}  // namespace lamella::hlo
