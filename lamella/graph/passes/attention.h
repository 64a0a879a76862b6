// Pass: replaces the parts of attention by one operator call.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Replaces softmax(q k^T * scale + mask) v of float32 by a call of
// aten::_scaled_dot_product_flash_attention_for_cpu, which reads the keys once, if only the result
// is used elsewhere. A query whose scores are all -infinity still gives NaN. Returns the number of
// replacements.
int64_t find_attention(Module& module);

}  // namespace lamella::hlo
