// Reads an operator's policies from its tags: see Note [One word in the declaration].
#include "lamella/dispatch/policy.h"

#include "lamella/abi/operators.h"
#include "lamella/abi/policy.h"
#include "lamella/core/error.h"
#include "lamella/dispatch/registry.h"
#include "lamella/schema/policy_words.h"

namespace lamella {
namespace {

std::string_view derived_batching(const OperatorEntry& op) {
  if (op.has_tag("pointwise")) return "pointwise";
  if (op.has_tag("reduction")) return "reduction";
  bool composite = op.kernel_for(DispatchKey::CompositeImplicitAutograd) != nullptr;
  return composite && !op.has_any_backend_kernel() ? "composite" : "";
}

// The tags' value under the exact name "autocast" or "autocast.cuda".
std::string_view stated(const OperatorEntry& op, std::string_view name) {
  for (const std::string& tag : op.tags) {
    std::string_view text = tag;
    if (text.size() > name.size() && text[name.size()] == ':' && text.starts_with(name)) {
      return text.substr(name.size() + 1);
    }
  }
  return {};
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
  std::string_view word = stated(op, policy_name(policy));
  if (!word.empty()) return word;
  return policy == Policy::kBatching ? derived_batching(op) : std::string_view();
}

std::string_view autocast_class(const OperatorEntry& op, std::string_view device_type) {
  std::string_view of_device = stated(op, "autocast." + std::string(device_type));
  return !of_device.empty() ? of_device : stated(op, "autocast");
}

std::string_view autocast_class(const OperatorEntry& op, DispatchKey key) {
  if (!is_autocast_key(key)) return {};
  constexpr std::string_view device_types[] = {
#define LAMELLA_ROW(name, number, text, ...) text,
      LAMELLA_BACKENDS(LAMELLA_ROW)
#undef LAMELLA_ROW
  };
  return autocast_class(op, device_types[split_key(key)->backend]);
}

void check_policies(const std::string& name, const std::vector<std::string>& tags,
                    const FunctionSchema& schema, const std::string& origin) {
  for (const std::string& tag : tags) {
    const std::optional<PolicyTag> parts = split_policy_tag(tag);
    if (!parts) continue;
    if (const std::optional<std::string> problem = policy_tag_problem(tag)) {
      throw Error(name + ": " + *problem + " (" + origin + ")");
    }
    for (const std::string& other : tags) {
      if (&other == &tag) break;
      if (other.substr(0, other.find(':')) == tag.substr(0, tag.find(':'))) {
        throw Error(name + ": expected one word for a policy, got '" + other + "' and '" + tag +
                    "' (" + origin + ")");
      }
    }
    if (parts->policy == "batching" || parts->value == "none") continue;
    if (schema.kind() != SchemaKind::kFunctional) {
      throw Error(name + ": expected '" + tag + "' on an operator that writes no argument, got '" +
                  schema.str() + "' (" + origin + ")");
    }
  }
}

}  // namespace lamella

extern "C" const char* lamella_operator_policy(const lamella_operator* op,
                                               const char* policy) noexcept {
  using namespace lamella;
  try {
    const OperatorEntry& entry = *entry_of(op);
    std::lock_guard lock(Registry::get().mutex());
    if (!entry.defined()) return nullptr;
    const std::string_view name = policy;
    std::string_view word = name.starts_with("autocast.") ? autocast_class(entry, name.substr(9))
                            : name == "batching"          ? policy_of(entry, Policy::kBatching)
                                                          : stated(entry, name);
    return word.empty() ? nullptr : word.data();
  } catch (...) {
    lamella::detail::status_of_current_exception();
    return nullptr;
  }
}

extern "C" const char* lamella_operator_doc(const lamella_operator* op) noexcept {
  using namespace lamella;
  try {
    const OperatorEntry& entry = *entry_of(op);
    std::lock_guard lock(Registry::get().mutex());
    return entry.defined() && entry.doc != nullptr ? entry.doc->c_str() : nullptr;
  } catch (...) {
    lamella::detail::status_of_current_exception();
    return nullptr;
  }
}

extern "C" const lamella_derivative* lamella_operator_derivative(
    const lamella_operator* op) noexcept {
  using namespace lamella;
  const OperatorEntry& entry = *entry_of(op);
  std::lock_guard lock(Registry::get().mutex());
  return entry.defined() ? entry.derivative : nullptr;
}
