// Pass: merges a row that is added to a product, and a relu of that, into one call.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Replaces `add(dot(x, w), broadcast(row))` by a call of aten::addmm, and `max(…, 0)` of it by one
// of aten::_addmm_activation, which the libraries of a device compute as the product's epilogue: a
// program for a device has one launch instead of three. Products of float32, float16 and bfloat16
// without batch dimensions by a matrix. Returns the number of calls.
int64_t add_rows_in_products(Module& module);

}  // namespace lamella::hlo
