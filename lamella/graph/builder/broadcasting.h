// Implicit broadcasting. Internal to lamella/graph/builder.
#pragma once
#include "lamella/graph/builder/emission.h"

namespace lamella::hlo {

// Broadcasts the two operands to common dimensions; see Note [Implicit broadcasting].
std::pair<Op, Op> broadcast_together(Emission& e, Op lhs, Op rhs,
                                     std::span<const int64_t> broadcast_dimensions);
// Broadcasts a scalar to these dimensions; returns other arrays unchanged.
Op broadcast_scalar(Emission& e, Op op, std::span<const int64_t> sizes);
// Dimension d of the operand becomes dimension `dimensions[d]` of the result, repeated where its
// size is 1 and the result's is not.
Op broadcast_in_dim(Emission& e, Op op, std::span<const int64_t> sizes,
                    std::span<const int64_t> dimensions);

}  // namespace lamella::hlo
