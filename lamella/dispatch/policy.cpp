// What an operator says to the layers. See Note [One word in the declaration].
#include "lamella/dispatch/policy.h"

namespace lamella {
namespace {

bool has_tag(const OperatorEntry& op, std::string_view name) {
  for (const std::string& tag : op.tags) {
    if (tag == name) return true;
  }
  return false;
}

std::string_view derived_batching(const OperatorEntry& op) {
  if (has_tag(op, "pointwise")) return "pointwise";
  if (has_tag(op, "reduction")) return "reduction";
  bool composite = op.kernel_for(DispatchKey::CompositeImplicitAutograd) != nullptr;
  return composite && !op.has_any_backend_kernel() ? "composite" : "";
}

}  // namespace

std::string_view policy_name(Policy policy) {
  switch (policy) {
    case Policy::kAutocast:
      return "autocast";
    case Policy::kBatching:
      return "batching";
    case Policy::kHlo:
      return "hlo";
  }
  return "";
}

std::string_view policy_of(const OperatorEntry& op, Policy policy) {
  std::string_view name = policy_name(policy);
  for (const std::string& tag : op.tags) {
    std::string_view text = tag;
    if (text.size() > name.size() && text[name.size()] == ':' && text.starts_with(name)) {
      return text.substr(name.size() + 1);
    }
  }
  return policy == Policy::kBatching ? derived_batching(op) : std::string_view();
}

}  // namespace lamella
