// From derivatives.yaml to its model: entries are matched with operators, formulas are read.
#include "codegen/derivatives.h"

#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <set>

#include "codegen/derivative_table.h"
#include "codegen/keys.h"
#include "lamella/schema/parser.h"
#include "lamella/schema/suggest.h"

namespace lamella::codegen {
namespace {

// Argument and return types must be those declared; annotations and defaults need not be repeated.
std::string first_difference(FunctionSchema written, FunctionSchema declared) {
  for (FunctionSchema* schema : {&written, &declared}) {
    schema->name = {};
    for (auto* list : {&schema->arguments, &schema->returns}) {
      for (Argument& one : *list) {
        one.aliases.clear();
        one.default_value.reset();
        one.kwarg_only = false;
      }
    }
    for (Argument& one : schema->returns) one.name.clear();
  }
  for (const bool of_return : {false, true}) {
    const auto& here = of_return ? written.returns : written.arguments;
    const auto& there = of_return ? declared.returns : declared.arguments;
    const std::string what = of_return ? "return " : "argument ";
    for (std::size_t i = 0; i < std::max(here.size(), there.size()); ++i) {
      const std::string which = what + std::to_string(i + 1);
      if (i >= here.size()) return "expected " + which + " '" + there[i].str() + "', got none";
      if (i >= there.size()) return "expected no " + which + ", got '" + here[i].str() + "'";
      if (here[i] == there[i]) continue;
      return "expected " + which + " to be '" + there[i].str() + "', got '" + here[i].str() + "'";
    }
  }
  return "";
}

class DerivativeLoader {
 public:
  DerivativeLoader(const ModelOptions& options, const Model& model, Diagnostics& diagnostics)
      : options_(options), model_(model), diagnostics_(diagnostics) {
    for (const NativeFunction& function : model.functions) {
      by_name_.emplace(function.full_name(), &function);
    }
    for (const NativeFunctionGroup& group : model.groups) {
      if (group.functional != nullptr) groups_.emplace(group.functional, &group);
    }
  }

  void entry(const YamlPtr& node) {
    if (!node->is_map()) {
      diagnostics_.add(node->where, "expected an entry '- name: NAME(ARGUMENTS) -> RETURNS', got " +
                                        node->describe());
      return;
    }
    YamlPtr name, node_name, outputs, dispatch;
    TableFields fields;
    std::map<std::string, Location> seen;
    for (const auto& [key, value] : node->entries) {
      if (key->is_scalar()) {
        if (auto [first, fresh] = seen.emplace(key->text, key->where); !fresh) {
          diagnostics_.add(key->where, "field '" + key->text +
                                           "' appears twice in one entry; the first is on line " +
                                           std::to_string(first->second.line));
          continue;
        }
      }
      YamlPtr* special = !key->is_scalar()                         ? nullptr
                         : key->text == "name"                     ? &name
                         : key->text == "node"                     ? &node_name
                         : key->text == "output_differentiability" ? &outputs
                         : key->text == "dispatch"                 ? &dispatch
                                                                   : nullptr;
      if (special != nullptr) {
        *special = value;
      } else {
        fields.emplace_back(key, value);
      }
    }
    if (name == nullptr) {
      diagnostics_.add(node->where, "the entry has no 'name' with the operator's signature");
      return;
    }
    const NativeFunction* function = find(*name);
    if (function == nullptr || !fits(*function, name->where)) return;
    Derivative made;
    made.function = function;
    made.where = name->where;
    if (node_name != nullptr) read_node_name(made, *node_name);
    read_tables(made, *node, fields, outputs, dispatch);
    model_read_.entries.push_back(std::move(made));
  }

  DerivativeModel finish() {
    share_with_inplace();
    name_nodes();
    return std::move(model_read_);
  }

 private:
  void report(const NativeFunction& function, Location where, const std::string& message) {
    diagnostics_.add(where, bare_name(function) + ": " + message);
  }

  const NativeFunction* find(const YamlNode& name) {
    if (!name.is_scalar() || name.text.empty()) {
      diagnostics_.add(name.where,
                       "'name' expects a signature 'NAME(ARGUMENTS) -> RETURNS', got " +
                           (name.is_scalar() || name.is_null() ? "nothing" : name.describe()));
      return nullptr;
    }
    auto parsed = try_parse_schema(name.text);
    if (auto* problem = std::get_if<SchemaProblem>(&parsed)) {
      diagnostics_.add(name.locate(problem->offset), problem->message);
      return nullptr;
    }
    const FunctionSchema& schema = std::get<FunctionSchema>(parsed);
    OperatorName full = schema.name;
    if (full.ns.empty()) full.ns = options_.default_namespace;
    const auto found = by_name_.find(full.str());
    if (found == by_name_.end()) {
      diagnostics_.add(name.where,
                       "no operator is named '" + schema.name.str() + "'" + near_names(full));
      return nullptr;
    }
    const NativeFunction& function = *found->second;
    if (std::string text = first_difference(schema, function.schema); !text.empty()) {
      report(function, name.where,
             text + ", as declared on " + line_of(function.where, name.where));
      return nullptr;
    }
    return &function;
  }

  std::string near_names(const OperatorName& wanted) const {
    std::vector<std::string> overloads;
    std::vector<std::string> names;
    for (const NativeFunction& function : model_.functions) {
      OperatorName bare = function.schema.name;
      bare.ns.clear();
      if (function.ns != wanted.ns) continue;
      if (bare.name == wanted.name) overloads.push_back("'" + bare.str() + "'");
      names.push_back(bare.str());
    }
    if (overloads.size() == 1) return "; did you mean " + overloads[0] + "?";
    if (!overloads.empty()) {
      std::string text = "; its overloads are " + overloads[0];
      for (std::size_t i = 1; i < overloads.size(); ++i) text += ", " + overloads[i];
      return text;
    }
    OperatorName bare = wanted;
    bare.ns.clear();
    const std::vector<std::string_view> views(names.begin(), names.end());
    return did_you_mean(bare.str(), views);
  }

  bool fits(const NativeFunction& function, Location where) {
    if (auto [first, fresh] = entries_.emplace(&function, where); !fresh) {
      report(function, where, "has an entry already, on " + line_of(first->second, where));
      return false;
    }
    if (function.kind() == SchemaKind::kOut) {
      report(function, where,
             "an out form is not differentiated; write the entry for the functional form");
      return false;
    }
    return true;
  }

  // "NAME", or "NAME, NAME without ARGUMENT".
  void read_node_name(Derivative& made, const YamlNode& value) {
    static const std::regex form(R"((\w+)(, \w+ without (\w+))?)");
    const NativeFunction& f = *made.function;
    std::smatch parts;
    if (!value.is_scalar() || !std::regex_match(value.text, parts, form)) {
      report(f, value.where,
             "'node' expects a name, or 'NAME, NAME without ARGUMENT', got " + value.describe());
      return;
    }
    bool known = !parts[3].matched;
    for (const Argument& argument : f.schema.arguments) known |= argument.name == parts[3].str();
    if (!known) {
      report(f, value.where,
             "'node' names the argument '" + parts[3].str() + "', which it has not");
      return;
    }
    made.node = value.text;
  }

  void read_tables(Derivative& made, const YamlNode& node, const TableFields& fields,
                   const YamlPtr& outputs, const YamlPtr& dispatch) {
    const NativeFunction& f = *made.function;
    std::optional<std::vector<OutputRule>> said;
    if (outputs != nullptr) said = output_differentiability(f, *outputs);
    if (dispatch == nullptr) {
      table(made, "Default", node.where, fields, said);
      return;
    }
    if (!fields.empty()) {
      report(f, fields[0].first->where,
             "formulas stand beside 'dispatch'; move them into its table 'Default'");
    }
    if (!dispatch->is_map()) {
      report(f, dispatch->where,
             "'dispatch' expects tables of formulas by key, got " + dispatch->describe());
      return;
    }
    std::set<std::string> seen;
    for (const auto& [key, value] : dispatch->entries) {
      if (!is_key(*key)) {
        report(
            f, key->where,
            "unknown key " + key->describe() + ": expected 'Default' or one like 'AutogradCUDA'");
        continue;
      }
      if (!seen.insert(key->text).second) {
        report(f, key->where, "key '" + key->text + "' appears twice");
        continue;
      }
      if (!value->is_map()) {
        report(f, value->where, "'" + key->text + "' expects formulas, got " + value->describe());
        continue;
      }
      table(made, key->text, key->where, value->entries, said);
    }
    // Calls with none of the listed keys use an empty table, in which no argument has a formula.
    if (!seen.contains("Default")) table(made, "Default", dispatch->where, {}, said);
  }

  // `Autograd` stands for all keys, as "Default" does.
  static bool is_key(const YamlNode& key) {
    return key.is_scalar() && key.text != "Autograd" &&
           (key.text == "Default" || find_key(key.text).use == KeyUse::kAutograd);
  }

  void table(Derivative& made, const std::string& key, Location where, const TableFields& fields,
             const std::optional<std::vector<OutputRule>>& outputs) {
    const NativeFunction& f = *made.function;
    made.tables.push_back(read_table(f, key, fields, outputs, diagnostics_));
    made.tables.back().where = where;
    if (key == "Default" && !made.tables.back().slots.empty() && only_composite(f)) {
      report(f, where,
             "is made of other operators (CompositeImplicitAutograd) and has their derivatives; "
             "drop the entry, or give it a kernel of its own");
    }
  }

  static bool only_composite(const NativeFunction& f) {
    return f.has_composite_implicit_kernel() && std::ranges::all_of(f.dispatch, [](const auto& k) {
             return k.first.starts_with("CompositeImplicit");
           });
  }

  std::vector<OutputRule> output_differentiability(const NativeFunction& f, const YamlNode& node) {
    std::vector<OutputRule> list;
    const std::size_t count = f.schema.returns.size();
    if (!node.is_sequence()) {
      report(f, node.where,
             "'output_differentiability' expects a list such as [True, False], got " +
                 node.describe());
      return std::vector<OutputRule>(count);
    }
    for (const YamlPtr& item : node.items) {
      OutputRule rule;
      if (!item->is_scalar() || item->text.empty()) {
        report(f, item->where, "expected True or False, got " + item->describe());
      } else if (item->text == "False" || item->text == "false") {
        rule.differentiable = false;
      } else if (item->text != "True" && item->text != "true") {
        rule.condition = item;
      }
      list.push_back(rule);
    }
    if (list.size() != count) {
      report(f, node.where,
             "'output_differentiability' expects a word for each of the " + std::to_string(count) +
                 (count == 1 ? " return" : " returns") + ", got " + std::to_string(list.size()));
      list.resize(count);
    }
    return list;
  }

  void share_with_inplace() {
    for (Derivative& entry : model_read_.entries) {
      const auto group = groups_.find(entry.function);
      if (group == groups_.end()) continue;
      const NativeFunction* inplace = group->second->inplace;
      if (inplace == nullptr || entries_.contains(inplace)) continue;
      const bool same = inplace->schema.returns.size() == entry.function->schema.returns.size();
      if (same) entry.inplace = inplace;
    }
  }

  void name_nodes() {
    std::map<std::string, int> counts;
    for (Derivative& entry : model_read_.entries) {
      for (DerivativeTable& table : entry.tables) {
        if (table.slots.empty()) continue;
        std::string prefix = camel_case(entry.function->schema.name.name) + "Backward";
        // The node of an operator whose name says forward is the backward.
        for (std::size_t at; (at = prefix.find("ForwardBackward")) != std::string::npos;) {
          prefix.erase(at, 7);
        }
        if (table.key != "Default") prefix += table.key;
        const bool stated = table.key == "Default" && !entry.node.empty();
        table.node = stated ? entry.node : prefix + std::to_string(counts[prefix]++);
      }
    }
  }

  const ModelOptions& options_;
  const Model& model_;
  Diagnostics& diagnostics_;
  std::map<std::string, const NativeFunction*> by_name_;
  std::map<const NativeFunction*, const NativeFunctionGroup*> groups_;
  std::map<const NativeFunction*, Location> entries_;
  DerivativeModel model_read_;
};

}  // namespace

DerivativeModel load_derivatives(const std::vector<std::string>& paths, const ModelOptions& options,
                                 const Model& model, SourceSet& sources, Diagnostics& diagnostics) {
  DerivativeLoader loader(options, model, diagnostics);
  for (const std::string& path : paths) {
    const SourceFile* file = sources.load(path, diagnostics);
    if (file == nullptr) continue;
    for (const YamlPtr& node : read_entries(*file, diagnostics)) loader.entry(node);
  }
  DerivativeModel read = loader.finish();
  diagnostics.sort();
  return read;
}

}  // namespace lamella::codegen
