// Products that take their operands as they lie, and of one type.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Takes transposes of operands into the dimensions that a product names, where that leaves the
// result as it is. Operands and result get one type, by conversions around the product; a
// convolution without spatial dimensions becomes a product, and a sum of nothing zeros. Returns how
// many it changed.
int64_t canonicalize_products(Module& module);

}  // namespace lamella::hlo
