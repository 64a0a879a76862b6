// Calls of convolution and pooling operators as opcodes.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Makes custom calls to aten::convolution convolutions, with their bias added, and those to
// aten::max_pool2d_with_indices and aten::max_pool3d_with_indices whose places nobody reads windows
// that are reduced, where they follow a convolution that is faster with channels last; takes a
// reversed kernel into its convolution, and lets the larger of a number and each element wait until
// the windows are reduced. For programs of which machine code is made, and only what that does
// itself. Computations that call the gradients of such operators stay as they are, as those want
// what the operators gave. Returns how many it changed.
int64_t operators_to_windows(Module& module);

}  // namespace lamella::hlo
