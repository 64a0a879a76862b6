// Elementwise instructions that are something simpler.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Identities that hold for every value, NaN, infinities, -0 and integers that wrap included: x * 1,
// x - 0, x + -0, x / 2^n, select of equals, conversions there and back, ... and functions of
// repeated numbers, which become repeated functions. Returns how many it changed.
int64_t simplify_elementwise(Module& module);

}  // namespace lamella::hlo
