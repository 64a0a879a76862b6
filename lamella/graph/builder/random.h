// Builder functions for random numbers and batch normalisation. Source: XLA's operation semantics.
#pragma once
#include "lamella/graph/builder/op.h"
#include "lamella/graph/builder/types.h"
#include "lamella/graph/hlo/shape.h"

namespace lamella::hlo {

// Uniform numbers in [a, b). `a` and `b` are scalars of the shape's element type.
Op RngUniform(Operand a, Op b, const Shape& shape);
Op RngNormal(Operand mu, Op sigma, const Shape& shape);
// Returns (next state, bits), a function of the state alone. The state is U64[2] for RNG_THREE_FRY,
// and U64[2] or U64[3] for RNG_PHILOX.
Op RngBitGenerator(RandomAlgorithm algorithm, Operand initial_state, const Shape& shape);

// Returns (normalised, mean, variance), with statistics over all dimensions except feature_index.
// Statistics, scale and offset have one element per feature.
Op BatchNormTraining(Operand operand, Op scale, Op offset, float epsilon, int64_t feature_index);
Op BatchNormInference(Operand operand, Op scale, Op offset, Op mean, Op variance, float epsilon,
                      int64_t feature_index);
// Returns the gradients (operand, scale, offset).
Op BatchNormGrad(Operand operand, Op scale, Op batch_mean, Op batch_var, Op grad_output,
                 float epsilon, int64_t feature_index);

}  // namespace lamella::hlo
