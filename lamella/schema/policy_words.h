// What an operator's declaration may say to the layers: the words of its policies.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lamella {

// "lower_precision", "float32", "widest", "none", ...: lamella/layers/autocast says what each does.
std::span<const std::string_view> autocast_classes();
// "abs", "add", ...: those of lamella/graph/hlo/opcode.def.
std::span<const std::string_view> hlo_opcodes();

// "cpu", "cuda", ...: those of lamella/core/device_types.def.
bool is_device_type(std::string_view word);

// What is wrong with saying `value` for a policy, as "expects ..., got ..."; nothing where it fits.
std::optional<std::string> policy_problem(std::string_view policy, std::string_view value);

// A tag such as "autocast:float32", or "autocast.cuda:none" for one device type alone.
struct PolicyTag {
  std::string_view policy;
  std::string_view device;  // empty: all that have no word of their own
  std::string_view value;
};
// Nothing for a tag without ':'.
std::optional<PolicyTag> split_policy_tag(std::string_view tag);
// What is wrong with a tag that has a ':'; nothing where it fits, or has none.
std::optional<std::string> policy_tag_problem(std::string_view tag);

}  // namespace lamella
