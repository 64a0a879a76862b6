// Pass: simplifies elementwise instructions.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Applies identities that hold for every value, including NaN, infinities, -0 and integers that
// wrap: x * 1, x - 0, x + -0, x / 2^n, select of equal values, conversions back and forth, ...;
// functions of broadcast numbers become broadcasts of functions. Returns the number of changes.
int64_t simplify_elementwise(Module& module);

}  // namespace lamella::hlo
