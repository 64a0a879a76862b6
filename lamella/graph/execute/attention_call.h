// Calls of the attention operator that machine code makes itself.
#pragma once
#include <cstdint>
#include <optional>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

struct AttentionCall {
  bool causal = false;
  double scale = 1;
  int32_t mask = -1;  // which operand the mask is; -1: there is none
};
// What a custom call to _scaled_dot_product_flash_attention_for_cpu asks for: query, key and value
// are its first operands, four-dimensional float32, float16 or bfloat16, without dropout; a mask is
// float32. Nothing of other instructions.
std::optional<AttentionCall> attention_call(const Instruction& i);

}  // namespace lamella::hlo
