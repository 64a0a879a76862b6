// What surrounds the computation: places, shardings, layouts, donation, partitions.
#include "lamella/graph/hlo/scanner.h"
#include "lamella/graph/stablehlo/names.h"
#include "lamella/graph/stablehlo/translation.h"

namespace lamella::hlo::stablehlo {

std::string_view Translation::metadata(const Attribute& location) {
  std::string_view& kept = metadata_[&location];
  if (kept.data() != nullptr) return kept;
  std::string text;
  auto add = [&](const char* name, const std::string& value) {
    text += str(text.empty() ? "{" : " ", name, "=", value);
  };
  if (!location.text.empty()) add("op_name", quoted(location.text));
  if (!location.file.empty()) {
    add("source_file", quoted(location.file));
    add("source_line", str(location.integer));
  }
  if (!text.empty()) text += "}";
  return kept = module_.arena().copy(text.empty() ? std::string_view(" ") : text);
}

void Translation::add_common(AttributeList& list, const std::vector<Named>& attributes,
                             const Attribute* location) {
  for (const Named& one : attributes) {
    if (one.name == "mhlo.sharding" && !one.value->text.empty()) {
      list.text(AttributeKey::Sharding, one.value->text);
    } else if (one.name == "sdy.sharding" && one.value->kind == Attribute::Kind::Dictionary) {
      list.text(AttributeKey::Sharding, sharding_text(*one.value));
    } else if (one.name == "mhlo.frontend_attributes") {
      list.text(AttributeKey::FrontendAttributes, frontend_attributes(*one.value));
    }
  }
  if (location == nullptr || location->kind != Attribute::Kind::Location) return;
  std::string_view text = metadata(*location);
  if (text != " ") list.text(AttributeKey::Metadata, text);
}

void Translation::module_attributes() {
  for (const Named& one : program_.root->attributes) {
    std::string text;
    std::string_view name = one.name;
    if (!name.starts_with("mhlo.")) continue;
    name.remove_prefix(5);
    if (name == "num_partitions" || name == "num_replicas") {
      if (one.value->integer <= 1) continue;
      text = str(one.value->integer);
      if (name == "num_replicas") name = "replica_count";
    } else if (name == "frontend_attributes") {
      text = frontend_attributes(*one.value);
    } else {
      continue;
    }
    module_.attributes.emplace_back(module_.arena().copy(name), module_.arena().copy(text));
  }
}

namespace {

const Attribute* entry_of(const std::vector<const Attribute*>& all, size_t i,
                          std::string_view name) {
  if (i >= all.size()) return nullptr;
  for (const Named& one : all[i]->entries) {
    if (one.name == name) return one.value;
  }
  return nullptr;
}

}  // namespace

// The attributes of the entry's parameters and results.
void Translation::entry_attributes(const Function& function) {
  const Operation& op = *function.operation;
  static const std::vector<const Attribute*> kNone;
  auto list = [&](std::string_view name) -> const std::vector<const Attribute*>& {
    const Attribute* found = op.find(name);
    return found != nullptr ? found->list : kNone;
  };
  const auto &parameters = list("arg_attrs"), &results = list("res_attrs");
  Computation& entry = *function.computation;
  const bool is_tuple = function.type->results.size() != 1;
  auto set = [&](Instruction* one, const std::vector<Named>& entries, std::string_view sharding) {
    AttributeList all(module_);
    add_common(all, entries, nullptr);
    if (!sharding.empty()) all.text(AttributeKey::Sharding, sharding);
    auto made = all.sorted();
    if (!made.empty()) one->attributes = module_.arena().copy(made);
  };
  std::string donors;
  for (size_t i = 0; i < entry.parameters.size(); ++i) {
    if (i < parameters.size()) set(entry.parameters[i], parameters[i]->entries, {});
    if (const Attribute* output = entry_of(parameters, i, "tf.aliasing_output")) {
      InputOutputAlias alias;
      if (is_tuple) alias.output = {output->integer};
      alias.parameter = static_cast<int64_t>(i);
      module_.input_output_aliases.push_back(alias);
    }
    const Attribute* donated = entry_of(parameters, i, "jax.buffer_donor");
    if (donated != nullptr && (donated->kind == Attribute::Kind::Unit || donated->integer != 0)) {
      donors += str(donors.empty() ? "" : ", ", "(", i, ", {})");
    }
  }
  if (!donors.empty()) {
    module_.attributes.emplace_back("buffer_donor", module_.arena().copy(str("{ ", donors, " }")));
  }
  // Shardings of the results belong to the root.
  std::string shardings;
  bool any = false;
  for (size_t i = 0; i < function.type->results.size(); ++i) {
    const Attribute *one = entry_of(results, i, "mhlo.sharding"),
                    *other = entry_of(results, i, "sdy.sharding");
    any |= one != nullptr || other != nullptr;
    if (i != 0) shardings += ", ";
    shardings += one != nullptr     ? std::string(one->text)
                 : other != nullptr ? sharding_text(*other)
                                    : "{unknown}";
  }
  if (any && is_tuple) set(entry.root, {}, str("{", shardings, "}"));
  if (any && !is_tuple) {
    // The root may be a parameter, which has a sharding of its own.
    current_ = &entry;
    entry.root = add(Opcode::Copy, {entry.root}, *entry.root->shape);
    set(entry.root, {}, shardings);
  }
  // Layouts as callers see them.
  auto layout = [&](const Shape& shape, const Attribute* mode) {
    Shape made = shape.is_array() ? shape.with_default_layout() : shape;
    if (mode != nullptr && shape.is_array() && mode->text.starts_with("{")) {
      try {
        made = Shape::parse(str(shape.to_string(false), mode->text));
      } catch (const Error&) {
        fail(op, "expected a layout of ", shape.to_string(false), ", got '", mode->text, "'");
      }
    }
    return made;
  };
  any = false;
  for (size_t i = 0; i < std::max(parameters.size(), results.size()); ++i) {
    for (const auto* all : {&parameters, &results}) {
      const Attribute* mode = entry_of(*all, i, "mhlo.layout_mode");
      any |= mode != nullptr && mode->text.starts_with("{");
    }
  }
  if (!any) return;
  for (size_t i = 0; i < entry.parameters.size(); ++i) {
    module_.entry_parameter_layouts.push_back(module_.intern(
        layout(*entry.parameters[i]->shape, entry_of(parameters, i, "mhlo.layout_mode"))));
  }
  if (!is_tuple) {
    module_.entry_result_layout =
        module_.intern(layout(*entry.root->shape, entry_of(results, 0, "mhlo.layout_mode")));
    return;
  }
  std::vector<Shape> parts;
  for (size_t i = 0; i < function.type->results.size(); ++i) {
    parts.push_back(
        layout(entry.root->shape->tuple_shapes()[i], entry_of(results, i, "mhlo.layout_mode")));
  }
  module_.entry_result_layout = module_.intern(Shape::tuple(std::move(parts)));
}

}  // namespace lamella::hlo::stablehlo
