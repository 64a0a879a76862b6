// Attention, recognised in its parts.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Makes softmax(q k^T * scale + mask) v of float32 one call of the operator
// aten::_scaled_dot_product_flash_attention_for_cpu, which passes once over the keys, where nothing
// but the result is read elsewhere. A query whose scores are all -infinity gives NaN as before.
// Returns how many it changed.
int64_t find_attention(Module& module);

}  // namespace lamella::hlo
