// The words of the policies, and the checks of policies and policy tags.
#include "lamella/schema/policy_words.h"

#include <algorithm>
#include <array>

#include "lamella/abi/dispatch_keys.def"
#include "lamella/schema/suggest.h"

namespace lamella {
namespace {

constexpr std::array<std::string_view, 3> kPolicies = {"autocast", "batching", "hlo"};
constexpr std::array<std::string_view, 6> kAutocast = {
    "lower_precision", "float32", "float32_set_dtype", "widest", "banned", "none"};
constexpr std::array<std::string_view, 4> kBatching = {"pointwise", "reduction", "composite",
                                                       "loop"};
constexpr std::string_view kOpcodes[] = {
#define LAMELLA_HLO_OPCODE(name, text, ...) text,
#include "lamella/graph/hlo/opcode.def"
};

constexpr std::string_view kDeviceTypes[] = {
#define LAMELLA_ROW(name, number, text, ...) text,
    LAMELLA_BACKENDS(LAMELLA_ROW)
#undef LAMELLA_ROW
};

bool contains(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

std::string but_got(std::string_view expects, std::string_view value,
                    std::span<const std::string_view> words) {
  std::string text = "expects ";
  text += expects;
  text += value.empty() ? ", got nothing" : ", got '" + std::string(value) + "'";
  return value.empty() ? text : text + did_you_mean(value, words);
}

bool is_rule_name(std::string_view text) {
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') &&
         std::ranges::all_of(text, [](char c) {
           return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
         });
}

}  // namespace

std::span<const std::string_view> autocast_classes() { return kAutocast; }
std::span<const std::string_view> hlo_opcodes() { return kOpcodes; }
bool is_device_type(std::string_view word) { return contains(kDeviceTypes, word); }

std::optional<std::string> policy_problem(std::string_view policy, std::string_view value) {
  if (policy == "autocast") {
    if (contains(kAutocast, value)) return std::nullopt;
    return but_got("lower_precision, float32, float32_set_dtype, widest, banned or none", value,
                   kAutocast);
  }
  if (policy == "batching") {
    // Any name of a rule is accepted, except a likely misspelling of one of the four words.
    if (contains(kBatching, value)) return std::nullopt;
    if (is_rule_name(value) && !nearest_word(value, kBatching)) return std::nullopt;
    return but_got("pointwise, reduction, composite, loop or the name of a rule", value, kBatching);
  }
  if (contains(kOpcodes, value)) return std::nullopt;
  return but_got("an HLO opcode such as add", value, kOpcodes);
}

std::optional<PolicyTag> split_policy_tag(std::string_view tag) {
  const std::size_t colon = tag.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  PolicyTag result{tag.substr(0, colon), {}, tag.substr(colon + 1)};
  if (const std::size_t dot = result.policy.find('.'); dot != std::string_view::npos) {
    result.device = result.policy.substr(dot + 1);
    result.policy = result.policy.substr(0, dot);
  }
  return result;
}

std::optional<std::string> policy_tag_problem(std::string_view tag) {
  const std::optional<PolicyTag> parts = split_policy_tag(tag);
  if (!parts) return std::nullopt;
  if (!contains(kPolicies, parts->policy)) {
    return "unknown policy '" + std::string(parts->policy) + "' in tag '" + std::string(tag) + "'" +
           did_you_mean(parts->policy, kPolicies);
  }
  if (!parts->device.empty() && parts->policy != "autocast") {
    return "tag '" + std::string(tag) + "' expects no device type: only autocast has one";
  }
  if (tag.find('.') < tag.find(':') && !is_device_type(parts->device)) {
    return "unknown device type '" + std::string(parts->device) + "' in tag '" + std::string(tag) +
           "'" + did_you_mean(parts->device, kDeviceTypes);
  }
  std::optional<std::string> problem = policy_problem(parts->policy, parts->value);
  if (problem) return "'" + std::string(tag.substr(0, tag.find(':'))) + "' " + *problem;
  return std::nullopt;
}

}  // namespace lamella
