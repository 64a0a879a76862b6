// Reading of the formulas of one entry of derivatives.yaml.
#include "codegen/derivative_table.h"

#include <algorithm>
#include <map>

#include "codegen/cpp.h"
#include "lamella/schema/suggest.h"

namespace lamella::codegen {

std::string bare_name(const NativeFunction& function) {
  OperatorName name = function.schema.name;
  if (function.ns == "aten") name.ns.clear();
  return name.str();
}

std::string line_of(const Location& place, const Location& seen_from) {
  std::string text = "line " + std::to_string(place.line);
  if (place.file != seen_from.file) text += " of " + place.file->path();
  return text;
}

namespace {

std::string trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(" \t\n");
  if (from == std::string_view::npos) return "";
  return std::string(text.substr(from, text.find_last_not_of(" \t\n") - from + 1));
}

struct Name {
  std::string text;
  std::size_t offset;
};

// "self, other" with offsets.
std::vector<Name> split_names(std::string_view text) {
  std::vector<Name> names;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::size_t from = begin;
    while (from < end && (text[from] == ' ' || text[from] == '\t')) ++from;
    names.push_back({trimmed(text.substr(begin, end - begin)), from});
    begin = end + 1;
  }
  return names;
}

// A name that formulas may use, and its meaning.
struct Meaning {
  KnownName known;
  FormulaUse::Role role;
  std::size_t index;
};

NameKind kind_of(SchemaType type) {
  if (!type.holds_tensor()) return NameKind::kOther;
  return type.without_optional().is_list() ? NameKind::kTensorList : NameKind::kTensor;
}

// Reads one table of an entry.
class TableReader {
 public:
  TableReader(const NativeFunction& function, Diagnostics& diagnostics)
      : f_(function), schema_(function.schema), diagnostics_(diagnostics) {}

  // `outputs`: of output_differentiability, or nothing.
  DerivativeTable read(const std::string& key, const TableFields& fields,
                       const std::optional<std::vector<OutputRule>>& outputs) {
    table_.key = key;
    for (const auto& [names, value] : fields) field(names, value);
    std::ranges::sort(table_.slots);
    std::ranges::sort(table_.backward, {}, [](const Formula& f) { return f.targets.front(); });
    std::ranges::sort(table_.forward, {}, [](const Formula& f) { return f.targets.front(); });
    for (Formula& formula : table_.backward) backward(formula);
    for (Formula& formula : table_.forward) forward(formula);
    check_gradients();
    find_returns(outputs);
    return std::move(table_);
  }

 private:
  void report(Location where, const std::string& message) {
    diagnostics_.add(where, bare_name(f_) + ": " + message);
  }

  std::size_t return_index(std::string_view name) const {
    const auto& returns = schema_.returns;
    for (std::size_t i = 0; i < returns.size(); ++i) {
      if (name == "result" + std::to_string(i)) return i;
      if (!returns[i].name.empty() && name == returns[i].name) return i;
    }
    return name == "result" && returns.size() == 1 ? 0 : returns.size();
  }

  std::vector<std::string> return_names() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < schema_.returns.size(); ++i) {
      const std::string& name = schema_.returns[i].name;
      names.push_back(!name.empty()                 ? name
                      : schema_.returns.size() == 1 ? "result"
                                                    : "result" + std::to_string(i));
    }
    return names;
  }

  void field(const YamlPtr& key, const YamlPtr& value) {
    if (!key->is_scalar() || key->text.empty()) {
      report(key->where, "expected the name of an argument or return, got " + key->describe());
      return;
    }
    Formula formula;
    formula.key = key;
    formula.names = key->text;
    formula.node = value;
    bool of_return = false;
    bool good = true;
    for (const Name& name : split_names(key->text)) {
      const Location where = key->locate(name.offset);
      const int argument = schema_.argument_index(name.text);
      const std::size_t result = return_index(name.text);
      if (argument < 0 && result == schema_.returns.size()) {
        unknown_key(name.text, where);
        good = false;
        continue;
      }
      if (!formula.targets.empty() && of_return != (argument < 0)) {
        report(where, "a formula is for arguments or for returns, not for both");
        good = false;
        continue;
      }
      of_return = argument < 0;
      const std::size_t target = of_return ? result : static_cast<std::size_t>(argument);
      if (!not_differentiable(*value) && !has_gradient(name.text, target, of_return, where)) {
        good = false;
        continue;
      }
      if (auto [first, fresh] = seen_.emplace(std::pair(of_return, target), key->where); !fresh) {
        report(where,
               "'" + name.text + "' has a formula already, on " + line_of(first->second, where));
        good = false;
        continue;
      }
      formula.targets.push_back(target);
    }
    if (!good || !text(formula)) return;
    if (!of_return && not_differentiable(*value)) return;
    if (of_return) {
      table_.forward.push_back(std::move(formula));
      return;
    }
    table_.slots.insert(table_.slots.end(), formula.targets.begin(), formula.targets.end());
    table_.backward.push_back(std::move(formula));
  }

  void unknown_key(const std::string& name, Location where) {
    std::vector<std::string> names = return_names();
    for (const Argument& argument : schema_.arguments) names.push_back(argument.name);
    for (const char* word : {"output_differentiability", "dispatch", "name"})
      names.emplace_back(word);
    const std::vector<std::string_view> views(names.begin(), names.end());
    if (name.empty()) {
      report(where, "expected the name of an argument or return between commas");
    } else if (name == "result") {
      report(where, "the operator returns " + std::to_string(schema_.returns.size()) +
                        " values: name one of them, such as '" +
                        (schema_.returns.empty() ? "" : return_names()[0]) + "'");
    } else {
      report(where, "no argument or return is named '" + name + "'" + did_you_mean(name, views));
    }
  }

  static bool not_differentiable(const YamlNode& value) {
    return value.is_scalar() && trimmed(value.text) == "non_differentiable";
  }

  bool has_gradient(const std::string& name, std::size_t target, bool of_return, Location where) {
    const Argument& one = of_return ? schema_.returns[target] : schema_.arguments[target];
    if (one.type.holds_tensor()) return true;
    report(where, std::string(of_return ? "return '" : "argument '") + name + "' is " +
                      one.type.str() + ", and only tensors have gradients");
    return false;
  }

  bool text(Formula& formula) {
    const YamlNode& value = *formula.node;
    if (!value.is_scalar() || trimmed(value.text).empty()) {
      report(value.where,
             "'" + formula.key->text + "' expects a formula, got " +
                 (value.is_scalar() || value.is_null() ? "nothing" : value.describe()));
      return false;
    }
    formula.text = value.text;
    const std::string bare = trimmed(value.text);
    if (bare == "auto_linear") formula.kind = Formula::Kind::kAutoLinear;
    if (bare == "auto_element_wise") formula.kind = Formula::Kind::kAutoElementWise;
    return true;
  }

  // ---- Formulas ----

  void scan(Formula& formula, const std::vector<Meaning>& meanings) {
    std::vector<FormulaProblem> problems;
    const auto tokens = scan_formula(formula.text, problems);
    for (const FormulaProblem& problem : problems) {
      report(formula.node->locate(problem.offset), problem.message);
    }
    if (!problems.empty()) return;
    if (tokens.size() == 4 && tokens[0].text == "not_implemented" && tokens[1].text == "(" &&
        tokens[2].kind == FormulaToken::Kind::kText && tokens[3].text == ")") {
      formula.kind = Formula::Kind::kNotImplemented;
      formula.what = std::string(tokens[2].text);
      return;
    }
    std::vector<KnownName> known;
    for (const Meaning& meaning : meanings) known.push_back(meaning.known);
    const FormulaNames names = find_names(tokens, known);
    for (const Mention& mention : names.mentions) {
      const Meaning& meaning = meanings[mention.name];
      formula.uses.push_back({mention.begin, mention.end, meaning.role, meaning.index,
                              meaning.known.name, mention.attribute, mention.optional});
    }
    names_ = names;
    known_ = std::move(known);
  }

  std::vector<Meaning> returns_meant() const {
    std::vector<Meaning> list;
    const auto& returns = schema_.returns;
    for (std::size_t i = 0; i < returns.size(); ++i) {
      const NameKind kind = kind_of(returns[i].type);
      const auto add = [&](std::string name) {
        if (schema_.find_argument(name) == nullptr) {
          list.push_back({{std::move(name), kind}, FormulaUse::Role::kReturn, i});
        }
      };
      if (!returns[i].name.empty()) add(returns[i].name);
      add(returns.size() == 1 ? "result" : "result" + std::to_string(i));
    }
    return list;
  }

  bool is_foreach() const { return schema_.name.name.starts_with("_foreach_"); }

  void unknown(const Formula& formula, const UnknownName& name,
               const std::vector<std::string>& others) {
    if (names_.makes_functions && !looks_meant(name.text)) return;
    std::vector<std::string> all = others;
    for (const KnownName& one : known_) all.push_back(one.name);
    const std::vector<std::string_view> views(all.begin(), all.end());
    report(formula.node->locate(name.offset), "the formula names '" + std::string(name.text) +
                                                  "', which is no argument, return or gradient" +
                                                  did_you_mean(name.text, views));
  }

  // True if the name has the form of a name that formulas may use, so it is not a local variable.
  bool looks_meant(std::string_view name) const {
    if (name.starts_with("grad_") || name.starts_with("result")) return true;
    if (!name.ends_with("_t") && !name.ends_with("_p")) return false;
    return schema_.find_argument(name.substr(0, name.size() - 2)) != nullptr;
  }

  void backward(Formula& formula) {
    if (formula.kind != Formula::Kind::kExpression) {
      report(formula.node->where,
             "'" + trimmed(formula.text) + "' is for forward mode: it belongs to 'result'");
      return;
    }
    std::vector<Meaning> meanings;
    for (std::size_t i = 0; i < schema_.arguments.size(); ++i) {
      const Argument& argument = schema_.arguments[i];
      meanings.push_back({{argument.name, kind_of(argument.type)}, FormulaUse::Role::kArgument, i});
    }
    for (Meaning& meaning : returns_meant()) meanings.push_back(std::move(meaning));
    names_ = {};
    scan(formula, meanings);
    check_ambiguous(formula);
    std::vector<std::string> gradients = {"grad", "grads", "grad_input_mask"};
    for (const Argument& result : schema_.returns) {
      if (!result.name.empty()) gradients.push_back("grad_" + result.name);
    }
    const bool list_returned = std::ranges::any_of(schema_.returns, [](const Argument& r) {
      return kind_of(r.type) == NameKind::kTensorList;
    });
    for (std::size_t k = 0; k < names_.grad_indices.size(); ++k) {
      formula.uses_grads = true;
      const std::size_t index = names_.grad_indices[k];
      if (index == SIZE_MAX || list_returned || index < schema_.returns.size()) continue;
      report(formula.node->locate(names_.grad_index_offsets[k]),
             "the operator has " + std::to_string(schema_.returns.size()) +
                 (schema_.returns.size() == 1 ? " return" : " returns") +
                 ", so there is no such gradient");
    }
    for (const UnknownName& name : names_.unknown) {
      if (name.text == "grad") {
        formula.uses_grad = true;
      } else if (name.text == "grad_input_mask") {
        formula.uses_mask = true;
        if (formula.targets.size() > 1) continue;
        report(formula.node->locate(name.offset),
               "'grad_input_mask' is for the formula of several arguments: write 'a, b: ...'");
      } else if (const auto named = std::ranges::find(gradients, name.text);
                 named != gradients.end()) {
        formula.named_grads.push_back(return_index(name.text.substr(5)));
      } else if (name.text == "i" && is_foreach()) {
        formula.loops = true;
      } else if (name.text != "retain_variables") {
        unknown(formula, name, gradients);
      }
    }
  }

  // Reports an argument whose name is one that formulas use for something else.
  void check_ambiguous(const Formula& formula) {
    for (const FormulaUse& use : formula.uses) {
      const bool given = use.name == "grad" || use.name == "grads" ||
                         use.name == "grad_input_mask" || use.name == "result";
      if (!given || use.role != FormulaUse::Role::kArgument) continue;
      report(formula.node->locate(use.begin),
             "'" + use.name +
                 "' could be the argument or what a formula is given; rename the "
                 "argument in the declaration");
    }
  }

  void forward(Formula& formula) {
    if (formula.kind != Formula::Kind::kExpression) {
      automatic(formula);
      return;
    }
    std::vector<Meaning> meanings;
    for (std::size_t i = 0; i < schema_.arguments.size(); ++i) {
      const Argument& argument = schema_.arguments[i];
      const NameKind kind = kind_of(argument.type);
      if (!std::ranges::binary_search(table_.slots, i)) {
        meanings.push_back({{argument.name, NameKind::kOther}, FormulaUse::Role::kArgument, i});
        continue;
      }
      const std::string& name = argument.name;
      meanings.push_back({{name + "_t", NameKind::kOther}, FormulaUse::Role::kTangent, i});
      meanings.push_back({{name + "_p", NameKind::kOther}, FormulaUse::Role::kArgument, i});
      // A written argument always means its values before the call.
      if (argument.is_write()) {
        meanings.push_back(
            {{"original_" + name + "_t", NameKind::kOther}, FormulaUse::Role::kTangent, i});
        meanings.push_back(
            {{"original_" + name + "_p", NameKind::kOther}, FormulaUse::Role::kArgument, i});
      }
      if (kind == NameKind::kTensorList) {
        meanings.push_back({{name, NameKind::kOther}, FormulaUse::Role::kArgument, i});
      }
    }
    for (Meaning& meaning : returns_meant()) {
      meaning.known.kind = NameKind::kOther;
      meanings.push_back(std::move(meaning));
    }
    names_ = {};
    scan(formula, meanings);
    for (const UnknownName& name : names_.unknown) {
      const int argument = schema_.argument_index(name.text);
      if (name.text == "i" && is_foreach()) {
        formula.loops = true;
      } else if (argument >= 0) {
        const std::string text(name.text);
        report(formula.node->locate(name.offset), "in forward mode write '" + text + "_p' for '" +
                                                      text + "' itself or '" + text +
                                                      "_t' for its tangent");
      } else if (no_tangent(formula, name)) {
        continue;
      } else {
        unknown(formula, name, {});
      }
    }
    for (const std::size_t offset : names_.grad_index_offsets) {
      report(formula.node->locate(offset), "there are no gradients in forward mode");
    }
  }

  // Reports x_t or x_p of an argument that has no gradient.
  bool no_tangent(const Formula& formula, const UnknownName& name) {
    if (!name.text.ends_with("_t") && !name.text.ends_with("_p")) return false;
    const std::string argument(name.text.substr(0, name.text.size() - 2));
    if (schema_.find_argument(argument) == nullptr) return false;
    report(formula.node->locate(name.offset),
           "'" + argument + "' has no gradient, so there is no '" + std::string(name.text) +
               "'; write '" + argument + "'");
    return true;
  }

  void automatic(const Formula& formula) {
    const std::string word = trimmed(formula.text);
    if (table_.forward.size() > 1 || formula.targets.size() > 1) {
      report(formula.node->where, "'" + word + "' is for operators with one differentiable return");
    } else if (table_.slots.empty()) {
      report(formula.node->where, "'" + word + "' needs an argument with a gradient");
    } else if (formula.kind == Formula::Kind::kAutoElementWise && table_.slots.size() > 1) {
      report(formula.node->where, "'" + word +
                                      "' is for operators with one differentiable argument, got " +
                                      std::to_string(table_.slots.size()));
    }
  }

  // Reports an entry that names its gradients in more than one way.
  void check_gradients() {
    const Formula* grad = nullptr;
    const Formula* grads = nullptr;
    const Formula* named = nullptr;
    for (const Formula& formula : table_.backward) {
      if (formula.uses_grad) grad = &formula;
      if (formula.uses_grads) grads = &formula;
      if (!formula.named_grads.empty()) named = &formula;
    }
    if (grad != nullptr && grads != nullptr) {
      report(grads->node->where, "'grads' here and 'grad' on " +
                                     line_of(grad->node->where, grads->node->where) +
                                     ": write one of them throughout the entry");
    } else if (named != nullptr && (grad != nullptr || grads != nullptr)) {
      report(named->node->where,
             "'grad_" + schema_.returns[named->named_grads[0]].name + "' here and '" +
                 (grad != nullptr ? "grad" : "grads") + "' on " +
                 line_of((grad != nullptr ? grad : grads)->node->where, named->node->where) +
                 ": write one of them throughout the entry");
    }
  }

  // An expression over the arguments of the call.
  void condition(std::size_t index, const YamlPtr& node) {
    Formula formula;
    formula.key = formula.node = node;
    formula.text = node->text;
    formula.targets = {index};
    std::vector<Meaning> meanings;
    for (std::size_t i = 0; i < schema_.arguments.size(); ++i) {
      meanings.push_back(
          {{schema_.arguments[i].name, NameKind::kOther}, FormulaUse::Role::kArgument, i});
    }
    names_ = {};
    scan(formula, meanings);
    for (const UnknownName& name : names_.unknown) {
      std::vector<std::string_view> names = {"True", "False"};
      for (const KnownName& one : known_) names.push_back(one.name);
      report(node->locate(name.offset), "the condition names '" + std::string(name.text) +
                                            "', which is no argument" +
                                            did_you_mean(name.text, names));
    }
    table_.conditions.push_back(std::move(formula));
  }

  // Gives arguments that the entry does not mention a formula that raises, so no gradient is lost.
  void add_unimplemented() {
    for (std::size_t i = 0; i < schema_.arguments.size(); ++i) {
      const Argument& argument = schema_.arguments[i];
      if (!argument.type.holds_tensor() || seen_.contains({false, i})) continue;
      Formula formula;
      formula.kind = Formula::Kind::kNotImplemented;
      formula.names = argument.name;
      formula.what = in_quotes(schema_.name.name);
      formula.targets = {i};
      table_.slots.push_back(i);
      table_.backward.push_back(std::move(formula));
    }
    std::ranges::sort(table_.slots);
    std::ranges::sort(table_.backward, {}, [](const Formula& f) { return f.targets.front(); });
  }

  void find_returns(const std::optional<std::vector<OutputRule>>& outputs) {
    const auto& returns = schema_.returns;
    for (std::size_t i = 0; i < returns.size(); ++i) {
      const bool said = !outputs || (i < outputs->size() && (*outputs)[i].differentiable);
      table_.returns.push_back(said && returns[i].type.holds_tensor());
      if (table_.returns.back() && outputs && (*outputs)[i].condition != nullptr) {
        condition(i, (*outputs)[i].condition);
      }
    }
    const auto first = std::ranges::find(table_.returns, true);
    table_.main_return = static_cast<std::size_t>(first - table_.returns.begin());
    if (first != table_.returns.end()) add_unimplemented();
    const bool single = std::ranges::any_of(table_.backward, &Formula::uses_grad);
    if (table_.slots.empty()) {
      table_.returns.assign(returns.size(), false);
    } else if (first == table_.returns.end()) {
      report(table_.backward[0].key->where,
             "no return is differentiable, so a formula is never used");
    } else if (single) {
      std::fill(first + 1, table_.returns.end(), false);
    }
  }

  const NativeFunction& f_;
  const FunctionSchema& schema_;
  Diagnostics& diagnostics_;
  DerivativeTable table_;
  std::map<std::pair<bool, std::size_t>, Location> seen_;
  FormulaNames names_;
  std::vector<KnownName> known_;
};

}  // namespace

DerivativeTable read_table(const NativeFunction& function, const std::string& key,
                           const TableFields& fields,
                           const std::optional<std::vector<OutputRule>>& outputs,
                           Diagnostics& diagnostics) {
  return TableReader(function, diagnostics).read(key, fields, outputs);
}

}  // namespace lamella::codegen
