// Products that take their operands as they lie.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Takes transposes of operands into the dimensions that a product names, where that leaves the
// result as it is. Returns how many it changed.
int64_t canonicalize_products(Module& module);

}  // namespace lamella::hlo
