// The words of the policies that an operator's declaration may have for the layers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lamella {

// "lower_precision", "float32", "widest", "none", ...; lamella/layers/autocast documents them.
std::span<const std::string_view> autocast_classes();
// "abs", "add", ...: those of lamella/graph/hlo/opcode.def.
std::span<const std::string_view> hlo_opcodes();

// "cpu", "cuda", ...: those of lamella/abi/dispatch_keys.def with a backend.
bool is_device_type(std::string_view word);

// Why `value` is invalid for a policy, as "expects ..., got ..."; nothing if it is valid.
std::optional<std::string> policy_problem(std::string_view policy, std::string_view value);

// A tag such as "autocast:float32", or "autocast.cuda:none" for one device type alone.
struct PolicyTag {
  std::string_view policy;
  std::string_view device;  // empty: all device types without a tag of their own
  std::string_view value;
};
// Nothing for a tag without ':'.
std::optional<PolicyTag> split_policy_tag(std::string_view tag);
// Why a tag with a ':' is invalid; nothing if it is valid, or has no ':'.
std::optional<std::string> policy_tag_problem(std::string_view tag);

}  // namespace lamella
