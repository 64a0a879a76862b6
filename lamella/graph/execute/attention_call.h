// AttentionCall: calls of the attention operator that machine code makes directly.
#pragma once
#include <cstdint>
#include <optional>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

struct AttentionCall {
  bool causal = false;
  double scale = 1;
  int32_t mask = -1;  // number of the operand; -1: no mask
};
// The arguments of a custom call to _scaled_dot_product_flash_attention_for_cpu, or nullopt for any
// other instruction. Query, key and value are its first operands, four-dimensional float32, float16
// or bfloat16, without dropout; a mask is float32.
std::optional<AttentionCall> attention_call(const Instruction& i);

}  // namespace lamella::hlo
