// Derives signatures from signatures, for autogen and for grouping.
#include "codegen/variants.h"

#include <algorithm>
#include <array>
#include <unordered_set>

namespace lamella::codegen {
namespace {

constexpr std::array<std::string_view, 4> kOptionNames = {"dtype", "layout", "device",
                                                          "pin_memory"};
constexpr std::array<TypeKind, 4> kOptionKinds = {TypeKind::kScalarType, TypeKind::kLayout,
                                                  TypeKind::kDevice, TypeKind::kBool};

// Index of `dtype`, or -1.
int find_tensor_options(const FunctionSchema& schema) {
  const auto& arguments = schema.arguments;
  for (std::size_t i = 0; i + 4 <= arguments.size(); ++i) {
    bool all = true;
    for (std::size_t k = 0; k < 4; ++k) {
      const Argument& argument = arguments[i + k];
      all = all && argument.kwarg_only && argument.name == kOptionNames[k] &&
            argument.type.without_optional().kind() == kOptionKinds[k];
    }
    if (all) return static_cast<int>(i);
  }
  return -1;
}

void drop_tensor_options(FunctionSchema& schema) {
  const int at = find_tensor_options(schema);
  if (at >= 0)
    schema.arguments.erase(schema.arguments.begin() + at, schema.arguments.begin() + at + 4);
}

// The alias sets of all returns.
std::unordered_set<std::string_view> returned_sets(const FunctionSchema& schema) {
  std::unordered_set<std::string_view> sets;
  for (const Argument& result : schema.returns) {
    for (const AliasInfo& alias : result.aliases) {
      sets.insert(alias.before.begin(), alias.before.end());
    }
  }
  return sets;
}

bool is_in(const Argument& argument, const std::unordered_set<std::string_view>& sets) {
  return std::ranges::any_of(argument.aliases, [&](const AliasInfo& alias) {
    return std::ranges::any_of(alias.before,
                               [&](const std::string& name) { return sets.contains(name); });
  });
}

// `(name!)` on the Tensor inside `type`.
AliasInfo write_annotation(SchemaType type, const std::string& name) {
  AliasInfo alias;
  alias.before = alias.after = {name};
  alias.is_write = true;
  for (SchemaType t = type; t.is_optional() || t.is_list(); t = t.element()) ++alias.depth;
  return alias;
}

std::string out_overload(const std::string& overload) {
  return overload.empty() ? "out" : overload + "_out";
}

// Gives `schema` an out argument for each tensor (or list of tensors) it returns; the tensors are
// then returned only if all returns are plain tensors. False when it returns no tensor.
bool returns_to_out(FunctionSchema& schema) {
  std::vector<std::string> used;
  for (const Argument& argument : schema.arguments) {
    for (const AliasInfo& alias : argument.aliases) {
      used.insert(used.end(), alias.before.begin(), alias.before.end());
    }
  }
  std::vector<std::string> free;
  for (char c = 'a'; c <= 'z'; ++c) {
    if (std::ranges::find(used, std::string(1, c)) == used.end()) free.emplace_back(1, c);
  }
  const bool all_plain =
      std::ranges::all_of(schema.returns, [](const Argument& r) { return r.type.is_tensor(); });
  std::vector<Argument> returns;
  std::vector<Argument> outs;
  for (std::size_t i = 0; i < schema.returns.size(); ++i) {
    const Argument& result = schema.returns[i];
    if (!result.type.holds_tensor()) {
      returns.push_back(result);
      continue;
    }
    if (i >= free.size()) return false;
    Argument out;
    out.name = schema.returns.size() == 1 ? "out" : "out" + std::to_string(i);
    out.type = result.type;
    out.kwarg_only = true;
    out.aliases = {write_annotation(result.type, free[i])};
    if (all_plain) {
      Argument returned = out;
      returned.name.clear();
      returned.kwarg_only = false;
      returns.push_back(std::move(returned));
    }
    outs.push_back(std::move(out));
  }
  if (outs.empty()) return false;
  schema.arguments.insert(schema.arguments.end(), outs.begin(), outs.end());
  schema.returns = std::move(returns);
  return true;
}

}  // namespace

bool has_tensor_options(const FunctionSchema& schema) { return find_tensor_options(schema) >= 0; }

FunctionSchema without_mutation(const FunctionSchema& schema) {
  const auto returned = returned_sets(schema);
  FunctionSchema plain = schema;
  std::erase_if(plain.arguments, [](const Argument& argument) { return argument.is_out(); });
  std::vector<Argument> added;
  for (Argument& argument : plain.arguments) {
    if (argument.is_write() && !is_in(argument, returned)) {
      Argument result;
      result.name = argument.name + "_out";
      result.type = argument.type;
      added.push_back(std::move(result));
    }
    argument.aliases.clear();
  }
  // A return that was an out argument stays as a plain return.
  for (Argument& result : plain.returns) result.aliases.clear();
  for (const Argument& out : schema.arguments) {
    if (!out.is_out() || is_in(out, returned)) continue;
    Argument result;
    result.type = out.type;
    plain.returns.push_back(std::move(result));
  }
  plain.returns.insert(plain.returns.end(), added.begin(), added.end());
  return plain;
}

std::string variant_signature(const NativeFunction& function) {
  FunctionSchema plain = without_mutation(function.schema);
  drop_tensor_options(plain);
  std::string name = plain.name.base_name();
  constexpr std::string_view functional = "_functional";
  if (name.size() > functional.size() && name.ends_with(functional)) {
    name.resize(name.size() - functional.size());
  }
  std::string out = function.ns + "::" + name + "(";
  for (const Argument& argument : plain.arguments) {
    out += argument.type.str() + " " + argument.name + (argument.kwarg_only ? "*, " : ", ");
  }
  out += ") -> (";
  for (const Argument& result : plain.returns) out += result.type.str() + ", ";
  return out + ")";
}

namespace {

// The functional form of an operator that writes.
FunctionSchema make_functional(const FunctionSchema& base) {
  FunctionSchema functional = without_mutation(base);
  functional.name.name = base.name.base_name();
  if (base.kind() == SchemaKind::kMutable) functional.name.name += "_functional";
  if (base.kind() == SchemaKind::kOut) functional.name.overload_name.clear();
  return functional;
}

std::optional<FunctionSchema> make_inplace(const FunctionSchema& functional) {
  FunctionSchema inplace = functional;
  drop_tensor_options(inplace);
  if (inplace.arguments.empty() || inplace.returns.size() != 1) return std::nullopt;
  Argument& self = inplace.arguments.front();
  Argument& result = inplace.returns.front();
  if (self.name != "self" || !self.type.is_tensor() || !result.type.is_tensor())
    return std::nullopt;
  inplace.name.name = functional.name.is_dunder() ? "__i" + functional.name.name.substr(2)
                                                  : functional.name.name + "_";
  self.aliases = result.aliases = {write_annotation(self.type, "a")};
  result.name.clear();
  return inplace;
}

std::optional<FunctionSchema> make_out(const FunctionSchema& base) {
  FunctionSchema out = base;
  out.name.name = base.name.base_name();
  out.name.overload_name = out_overload(base.name.overload_name);
  if (base.kind() == SchemaKind::kInplace) {
    Argument& self = out.arguments.front();
    Argument result = self;
    result.name = "out";
    result.kwarg_only = true;
    self.aliases.clear();
    out.arguments.push_back(std::move(result));
    return out;
  }
  if (base.kind() == SchemaKind::kFunctional) drop_tensor_options(out);
  if (!returns_to_out(out)) return std::nullopt;
  return out;
}

std::vector<FunctionSchema> all_variants(const FunctionSchema& base) {
  std::vector<FunctionSchema> made;
  const SchemaKind kind = base.kind();
  const FunctionSchema functional = kind == SchemaKind::kFunctional ? base : make_functional(base);
  if (kind != SchemaKind::kFunctional) made.push_back(functional);
  if (kind == SchemaKind::kFunctional || kind == SchemaKind::kOut) {
    if (auto inplace = make_inplace(functional)) made.push_back(std::move(*inplace));
  }
  if (kind != SchemaKind::kOut) {
    if (auto out = make_out(base)) made.push_back(std::move(*out));
  }
  return made;
}

}  // namespace

namespace {

// Gives the out arguments these names, and the returns those of `base`. Returns false if the counts
// differ, or not all returns are out arguments.
bool name_outs(const FunctionSchema& base, FunctionSchema& schema,
               const std::vector<std::string>& names) {
  std::size_t next = 0;
  for (Argument& argument : schema.arguments) {
    if (!argument.is_out()) continue;
    if (next == names.size()) return false;
    argument.name = names[next++];
  }
  if (next != names.size() || schema.returns.size() != next) return false;
  for (std::size_t i = 0; i < next; ++i) schema.returns[i].name = base.returns[i].name;
  return true;
}

}  // namespace

std::optional<FunctionSchema> autogen_schema(const FunctionSchema& base, const Autogen& wanted) {
  const std::string& overload = wanted.name.overload_name;
  const bool wants_out = !wanted.outs.empty() || overload.find("out") != std::string::npos;
  for (FunctionSchema& made : all_variants(base)) {
    if (made.name.name != wanted.name.name || (made.kind() == SchemaKind::kOut) != wants_out)
      continue;
    made.name.overload_name = overload;
    if (!wanted.outs.empty() && !name_outs(base, made, wanted.outs)) return std::nullopt;
    return std::move(made);
  }
  return std::nullopt;
}

std::vector<OperatorName> autogen_names(const FunctionSchema& base) {
  std::vector<OperatorName> names;
  for (FunctionSchema& made : all_variants(base)) {
    made.name.ns.clear();
    names.push_back(std::move(made.name));
  }
  return names;
}

}  // namespace lamella::codegen
