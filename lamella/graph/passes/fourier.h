// Fourier transforms as calls of Lamella's operators.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Makes Fourier transforms custom calls to aten::_fft_c2c, aten::_fft_r2c and aten::_fft_c2r, but
// for those without elements. Returns how many it changed.
int64_t transforms_to_operators(Module& module);

}  // namespace lamella::hlo
