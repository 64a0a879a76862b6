// Policies: properties in an operator's declaration, besides its schema, that the layers read.
//
// Note [One word in the declaration]
//   An entry of YAML, or a definition in C++ or Python, may state how layers treat the operator:
//   its autocast class, its batching rule, the HLO opcode it lowers to. They are kept among its
//   tags, spelled "autocast:float32", "batching:pointwise", "hlo:add", and so pass through every
//   way of defining an operator. "autocast.cuda:none" is for one device type and takes precedence
//   over the general policy. Without a policy, tags and kernels decide: pointwise and reduction
//   name batching rules, and an operator with a composite kernel is batched through its parts.
#pragma once
#include <string_view>

#include "lamella/dispatch/operator_entry.h"

namespace lamella {

enum class Policy : uint8_t { kAutocast, kBatching, kHlo };

// "autocast", "batching", "hlo".
std::string_view policy_name(Policy policy);
// "float32", "pointwise", ...; empty if there is none. Valid as long as the operator is defined,
// and followed by '\0'.
LAMELLA_PRIVATE_API std::string_view policy_of(const OperatorEntry& op, Policy policy);
// The autocast class for a device type such as "cuda".
LAMELLA_PRIVATE_API std::string_view autocast_class(const OperatorEntry& op,
                                                    std::string_view device_type);
// The same for a key such as AutocastCUDA; empty for a key of another layer.
std::string_view autocast_class(const OperatorEntry& op, DispatchKey key);
// Throws where a tag has an unknown policy value, or two tags contradict each other.
// `origin`: "file:line".
void check_policies(const std::string& name, const std::vector<std::string>& tags,
                    const FunctionSchema& schema, const std::string& origin);

}  // namespace lamella
