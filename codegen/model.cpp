// Queries of the model that need no YAML.
#include "codegen/model.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "codegen/variants.h"

namespace lamella::codegen {

const Kernel* NativeFunction::find_kernel(std::string_view key) const {
  for (const auto& [name, kernel] : dispatch) {
    if (name == key) return &kernel;
  }
  return nullptr;
}

bool NativeFunction::has_tag(std::string_view tag) const {
  return std::ranges::find(tags, tag) != tags.end();
}

std::string NativeFunction::registered_tags() const {
  std::string text;
  const auto add = [&text](const std::string& policy, std::string_view word) {
    if (word.empty()) return;
    if (!text.empty()) text += ',';
    text += policy;
    text += word;
  };
  for (const std::string& tag : tags) add("", tag);
  add("autocast:", autocast);
  for (const auto& [device, word] : device_autocast) add("autocast." + device + ":", word);
  add("batching:", batching);
  add("hlo:", hlo);
  return text;
}

bool NativeFunction::has_composite_kernel() const {
  return std::ranges::any_of(
      dispatch, [](const auto& entry) { return entry.first.starts_with("Composite"); });
}

bool NativeFunction::has_composite_implicit_kernel() const {
  return find_kernel("CompositeImplicitAutograd") != nullptr;
}

bool NativeFunction::is_view() const {
  for (const Argument& result : schema.returns) {
    if (result.alias() != nullptr && !result.alias()->is_write) return true;
  }
  const std::string& name = schema.name.name;
  if (has_tag("inplace_view") && name != "resize_" && name != "resize_as_") return true;
  for (const Argument& argument : schema.arguments) {
    for (const AliasInfo& alias : argument.aliases) {
      if (std::ranges::find(alias.after, "*") != alias.after.end()) return true;
    }
  }
  return false;
}

bool NativeFunction::is_factory() const {
  if (category_override == "factory") return true;
  if (kind() != SchemaKind::kFunctional || schema.is_view()) return false;
  const bool tensorless = std::ranges::none_of(
      schema.arguments, [](const Argument& argument) { return argument.type.holds_tensor(); });
  const std::string& name = schema.name.name;
  return (tensorless || name.starts_with("new_") || name.ends_with("_like")) &&
         has_tensor_options(schema);
}

std::string NativeFunction::full_name() const {
  return ns + "::" + schema.name.name +
         (schema.name.overload_name.empty() ? "" : "." + schema.name.overload_name);
}

std::string NativeFunction::default_kernel_name() const {
  return schema.name.name + (kind() == SchemaKind::kOut ? "_out" : "");
}

bool NativeFunctionGroup::structured() const {
  for (const NativeFunction* member : {functional, inplace, out}) {
    if (member != nullptr && member->structured) return true;
  }
  return false;
}

const NativeFunction* NativeFunctionGroup::any() const {
  for (const NativeFunction* member : {functional, inplace, out, mutable_variant}) {
    if (member != nullptr) return member;
  }
  return nullptr;
}

const NativeFunction* Model::alias_target(const NativeFunction& alias) const {
  const auto& mine = alias.schema.arguments;
  for (const NativeFunction& f : functions) {
    const auto& theirs = f.schema.arguments;
    if (f.ns != alias.ns || f.schema.name.base_name() != alias.alias_of ||
        f.kind() != alias.kind() || mine.size() != theirs.size()) {
      continue;
    }
    bool fits = true;
    for (std::size_t i = 0; fits && i < mine.size(); ++i) {
      fits = mine[i].type.str() == theirs[i].type.str();
    }
    if (fits) return &f;
  }
  return nullptr;
}

const NativeFunction* Model::find(std::string_view full_name) const {
  if (by_name_.size() != functions.size()) {
    for (const NativeFunction& function : functions)
      by_name_.emplace(function.full_name(), &function);
  }
  const auto found = by_name_.find(std::string(full_name));
  return found == by_name_.end() ? nullptr : found->second;
}

bool skipped_in_python(const NativeFunction& function) {
  const OperatorName& operator_name = function.schema.name;
  std::string name = operator_name.name + (function.kind() == SchemaKind::kOut ? "_out" : "");
  constexpr std::array<std::string_view, 9> endings = {
      "_backward",        "_backward_out",  "_backward_input",
      "_backward_weight", "_backward_bias", "_forward",
      "_forward_out",     "_jvp",           "_overrideable"};
  return std::ranges::any_of(endings, [&](std::string_view end) { return name.ends_with(end); });
}

}  // namespace lamella::codegen
