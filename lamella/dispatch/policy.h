// Policies: what an operator's declaration says to the layers, beside its schema.
//
// Note [One word in the declaration]
//   An entry of YAML, or a definition in C++ or Python, may state how layers treat the operator:
//   its autocast class, its batching rule, the HLO opcode it lowers to. They are kept among its
//   tags, spelled "autocast:float32", "batching:pointwise", "hlo:add", and so pass through every
//   way of defining an operator. Where nothing is said, tags and kernels say it: pointwise and
//   reduction name batching rules, an operator with a composite kernel is batched by its parts.
#pragma once
#include <string_view>

#include "lamella/dispatch/operator_entry.h"

namespace lamella {

enum class Policy : uint8_t { kAutocast, kBatching, kHlo };

// "autocast", "batching", "hlo".
std::string_view policy_name(Policy policy);
// "float32", "pointwise", ...; empty where nothing says. Valid as long as the operator is defined.
LAMELLA_PRIVATE_API std::string_view policy_of(const OperatorEntry& op, Policy policy);

}  // namespace lamella
