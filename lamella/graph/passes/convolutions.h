// Convolutions as calls of Lamella's operator.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Makes convolutions of F32 and F64 custom calls to aten::convolution, between transposes to the
// order of dimensions that it has. Padding that it does not know, holes in the input and kernels
// that are turned around become instructions before it. Convolutions with groups of the batch stay.
// Where code is made (`native`), those that it calls itself stay as well: see
// convolution_problem(). Returns how many it changed.
int64_t convolutions_to_operators(Module& module, bool native);

}  // namespace lamella::hlo
