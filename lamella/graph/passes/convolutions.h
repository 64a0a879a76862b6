// Pass: replaces convolutions by calls of Lamella's operator.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Replaces convolutions of F32 and F64 by custom calls to aten::convolution, between transposes to
// its order of dimensions. Padding that the operator does not support, dilated inputs and reversed
// kernels become instructions before the call. Convolutions with batch groups stay. If code is
// compiled (`native`), convolutions that it supports stay, too: see convolution_problem(). Returns
// the number of replacements.
int64_t convolutions_to_operators(Module& module, bool native);

}  // namespace lamella::hlo
