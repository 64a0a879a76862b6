// Pass: replaces Fourier transforms by calls of Lamella's operators.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Replaces Fourier transforms, except empty ones, by custom calls to aten::_fft_c2c, aten::_fft_r2c
// and aten::_fft_c2r. Returns the number of replacements.
int64_t transforms_to_operators(Module& module);

}  // namespace lamella::hlo
