// Random numbers as functions of a key and a state (XLA's client/lib/prng.h).
#pragma once
#include <functional>
#include <utility>

#include "lamella/graph/builder/builder.h"

namespace lamella::hlo {

struct RngOutput {
  Op value, state;
};
// Gives bits of the shape's size as unsigned integers, and the next state.
using BitGeneratorTy = std::function<RngOutput(Op key, Op initial_state, const Shape& shape)>;
// The key is a U64 scalar; the state is one as well, and two U64 of Philox.
RngOutput ThreeFryBitGenerator(Op key, Op initial_state, const Shape& shape);
RngOutput PhiloxBitGenerator(Op key, Op initial_state, const Shape& shape);
// A state of two U64 and a key of Philox for a key whose bits need not look random.
std::pair<Op, Op> ScramblePhiloxKey(Op key);
// The state of two U64, a number of 128 bits with the low ones first, plus a U64 scalar.
Op PhiloxIncreaseCounter(Op counter, Op delta);
// Evenly distributed numbers in [minval, maxval), of their type.
RngOutput UniformFloatingPointDistribution(Op key, Op initial_state,
                                           const BitGeneratorTy& bit_generator, Op minval,
                                           Op maxval, const Shape& shape);
RngOutput UniformIntDistribution(Op key, Op initial_state, const BitGeneratorTy& bit_generator,
                                 Op minval, Op maxval, const Shape& shape);
// Normally distributed numbers of mean 0 and variance 1, by the method of Box and Muller.
RngOutput NormalFloatingPointDistribution(Op key, Op initial_state,
                                          const BitGeneratorTy& bit_generator, const Shape& shape);
// A vector of scalars.
Op ConcatScalars(Within builder, Span<Op> scalars);

}  // namespace lamella::hlo
