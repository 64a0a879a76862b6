// Pass: replaces convolutions by calls of Lamella's operator.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Replaces convolutions of F32 and F64 by custom calls to aten::convolution, between transposes to
// its order of dimensions. Convolutions of dilated inputs become transposed ones if they have no
// strides. Other dilations, padding that the operator does not support, and reversed kernels become
// instructions around the call. Convolutions with batch groups stay. If code is
// compiled (`native`), convolutions that it supports stay, too: see convolution_problem(). Returns
// the number of replacements.
int64_t convolutions_to_operators(Module& module, bool native);

}  // namespace lamella::hlo
