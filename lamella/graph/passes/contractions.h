// Pass: products read their operands without transposes, and have a single type.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Removes transposes of operands by changing the product's dimension numbers, if the result stays
// the same. Gives operands and result one type, by conversions around the product. A convolution
// without spatial dimensions becomes a product, an empty sum zeros. Returns the number of changes.
int64_t canonicalize_products(Module& module);

}  // namespace lamella::hlo
