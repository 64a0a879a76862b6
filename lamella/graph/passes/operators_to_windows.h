// Pass: replaces calls of convolution and pooling operators by opcodes.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Replaces custom calls by opcodes, for programs that will be compiled and only where the compiler
// supports the result:
// - aten::convolution becomes a convolution, and an addition of its bias.
// - aten::max_pool2d_with_indices and aten::max_pool3d_with_indices without uses of their indices
//   become reduced windows, if they follow a convolution that is faster with channels last.
// It also takes a reversed kernel into its convolution, and moves the maximum of an array and a
// scalar after the reduction of its windows. Computations that call gradients of these operators
// stay as they are, since the gradients need the operators' results. Returns the number of changes.
int64_t operators_to_windows(Module& module);

}  // namespace lamella::hlo
