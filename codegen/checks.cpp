// Rules that join several fields or several entries.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "codegen/entry_reader.h"
#include "codegen/keys.h"
#include "codegen/variants.h"
#include "lamella/schema/alias_check.h"
#include "lamella/schema/suggest.h"

namespace lamella::codegen {
namespace {

// Keys whose kernels a structured operator has itself, so that its delegates must not.
constexpr std::array<std::string_view, 6> kStructuredKeys = {"CPU", "CUDA", "MPS",
                                                             "XPU", "MTIA", "Meta"};

// `from` is a keyword too, but an argument may have the name: it is then positional only in Python.
constexpr std::array<std::string_view, 34> kPythonKeywords = {
    "False",  "None",   "True",  "and",      "as",     "assert", "async",  "await", "break",
    "class",  "continue", "def", "del",      "elif",   "else",   "except", "finally", "for",
    "global", "if",     "import", "in",      "is",     "lambda", "nonlocal", "not", "or",
    "pass",   "raise",  "return", "try",     "while",  "with",   "yield"};

class EntryCheck {
 public:
  EntryCheck(const Entry& entry, Diagnostics& diagnostics)
      : entry_(entry), f_(entry.function), diagnostics_(diagnostics) {}

  void run() {
    check_schema();
    check_types();
    check_variants();
    check_dispatch();
    check_structured();
    check_arguments();
    check_tags();
    check_autogen();
  }

 private:
  std::string name() const { return f_.schema.name.str(); }
  void report(Location where, const std::string& message) {
    diagnostics_.add(where, name() + ": " + message);
  }

  void check_schema() {
    for (const SchemaProblem& problem : check_alias_rules(f_.schema, entry_.func->text)) {
      diagnostics_.add(entry_.in_func(problem.offset), problem.message);
    }
    if (f_.schema.is_vararg || f_.schema.is_varret) {
      report(f_.where, "'...' cannot be bound; name each argument and return");
    }
  }

  static bool bindable(SchemaType type) {
    switch (type.kind()) {
      case TypeKind::kTypeVar:
      case TypeKind::kAnyEnum:
      case TypeKind::kAnyClass:
      case TypeKind::kNone:
      case TypeKind::kFuture:
      case TypeKind::kAwait:
      case TypeKind::kRRef:
      case TypeKind::kTuple:
        return false;
      default:
        return std::ranges::all_of(type.elements(), [](SchemaType t) { return bindable(t); });
    }
  }

  void check_types() {
    for (const Argument& argument : f_.schema.arguments) {
      if (!bindable(argument.type)) {
        report(entry_.in_func(argument.type_offset), "no code can be written for an argument of type '" +
                                                         argument.type.str() + "'");
      }
      if (std::ranges::find(kPythonKeywords, argument.name) != kPythonKeywords.end()) {
        report(entry_.in_func(argument.name_offset),
               "argument '" + argument.name + "' is a reserved word of Python; choose another name");
      }
    }
    for (const Argument& result : f_.schema.returns) {
      if (!bindable(result.type)) {
        report(entry_.in_func(result.type_offset),
               "no code can be written for a return of type '" + result.type.str() + "'");
      } else if (result.type.is_optional()) {
        report(entry_.in_func(result.type_offset),
               "a return cannot be optional; return an undefined tensor, or drop the '?'");
      }
    }
  }

  void check_variants() {
    if (!f_.method_variant) return;
    const Location where = entry_.place("variants");
    const Argument* self = f_.schema.find_argument("self");
    if (f_.kind() == SchemaKind::kOut) {
      report(where, "an out variant is a function only: write 'variants: function'");
    } else if (self == nullptr) {
      report(where, "a method needs an argument 'Tensor self'");
    } else if (!self->type.is_tensor()) {
      report(where, "a method needs an argument 'Tensor self', but 'self' is " + self->type.str());
    }
    if (!f_.python_module.empty()) {
      report(entry_.place("python_module"),
             "a function of a module cannot be a method: drop 'method' from 'variants', or "
             "'python_module'");
    }
  }

  void check_dispatch() {
    if (f_.manual_kernel_registration && entry_.has("dispatch")) {
      report(entry_.keys.at("dispatch"),
             "'dispatch' has no effect with 'manual_kernel_registration: True'; drop one of them");
    }
    const std::pair<std::string, Kernel>* first = nullptr;
    for (const auto& kernel : f_.dispatch) {
      const std::string& key = kernel.first;
      // The one for nested tensors stands beside another: it covers what the other does not.
      if (!key.starts_with("Composite") || key == "CompositeImplicitAutogradNestedTensor") continue;
      if (first == nullptr) {
        first = &kernel;
        continue;
      }
      const auto rank = [](const std::string& k) {
        return k == "CompositeExplicitAutogradNonFunctional" ? 0
               : k == "CompositeExplicitAutograd"            ? 1
                                                             : 2;
      };
      const bool second_wins = rank(key) < rank(first->first);
      const std::string& kept = second_wins ? key : first->first;
      const std::string& dead = second_wins ? first->first : key;
      report(kernel.second.where, "'" + kept + "' takes precedence over '" + dead +
                                      "', whose kernel would never run; keep one of them");
    }
  }

  void check_structured() {
    if (f_.structured && f_.structured_delegate) {
      report(entry_.keys.at("structured_delegate"),
             "an operator is 'structured' or has a 'structured_delegate', not both");
    }
    if (f_.structured) {
      if (f_.kind() != SchemaKind::kOut) {
        report(entry_.keys.at("structured"),
               "'structured' belongs to the out variant; here write 'structured_delegate: " +
                   f_.schema.name.base_name() + "." +
                   (f_.schema.name.overload_name.empty() ? "" : f_.schema.name.overload_name + "_") +
                   "out'");
      }
      if (!entry_.has("dispatch") && f_.ufunc_inner_loop.empty()) {
        report(entry_.keys.at("structured"),
               "a structured operator needs 'dispatch' with a kernel for each backend");
      }
      for (const auto& [key, kernel] : f_.dispatch) {
        if (key.starts_with("CompositeImplicit")) {
          report(kernel.where, "a structured operator has a kernel for each backend; '" + key +
                                   "' does not fit it");
        }
      }
    }
    if (f_.structured_delegate) {
      if (f_.kind() == SchemaKind::kOut) {
        report(entry_.keys.at("structured_delegate"),
               "an out variant is what others delegate to; did you mean 'structured: True'?");
      }
      for (const auto& [key, kernel] : f_.dispatch) {
        if (std::ranges::find(kStructuredKeys, key) != kStructuredKeys.end()) {
          report(kernel.where, "the kernel for " + key + " comes from '" +
                                   f_.structured_delegate->str() +
                                   "', to which the operator delegates; drop this one");
        }
      }
    }
    if (f_.is_structured() && !f_.device_guard) {
      report(entry_.place("device_guard"), "a structured operator always guards its device; drop "
                                           "'device_guard: False'");
    }
    for (const char* field : {"structured_inherits", "precomputed", "ufunc_inner_loop"}) {
      if (entry_.has(field) && !f_.structured) {
        report(entry_.keys.at(field), "'" + std::string(field) + "' needs 'structured: True'");
      }
    }
    for (const UfuncLoop& loop : f_.ufunc_inner_loop) {
      for (std::string_view key : {"CPU", "CUDA"}) {
        if (const Kernel* kernel = f_.find_kernel(key)) {
          report(kernel->where, "the kernel for " + std::string(key) +
                                    " is made from 'ufunc_inner_loop'; drop one of them");
        }
      }
      static_cast<void>(loop);
      break;
    }
  }

  std::vector<std::string_view> argument_names() const {
    std::vector<std::string_view> names;
    for (const Argument& argument : f_.schema.arguments) names.push_back(argument.name);
    return names;
  }

  // The place of item `index` of a field that holds a list.
  Location item_place(const std::string& field, std::size_t index) const {
    const YamlPtr& value = entry_.values.at(field);
    return index < value->items.size() ? value->items[index]->where : value->where;
  }

  void check_arguments() {
    const auto names = argument_names();
    for (std::size_t i = 0; i < f_.cpp_no_default_args.size(); ++i) {
      const std::string& wanted = f_.cpp_no_default_args[i];
      const Argument* argument = f_.schema.find_argument(wanted);
      if (argument == nullptr) {
        report(item_place("cpp_no_default_args", i),
               "no argument is named '" + wanted + "'" + did_you_mean(wanted, names));
      } else if (!argument->default_value) {
        report(item_place("cpp_no_default_args", i), "'" + wanted + "' has no default to leave out");
      }
    }
    for (std::size_t i = 0; i < f_.precomputed.size(); ++i) {
      const std::string& replaced = f_.precomputed[i].replaced;
      if (!replaced.empty() && f_.schema.find_argument(replaced) == nullptr) {
        report(item_place("precomputed", i),
               "no argument is named '" + replaced + "'" + did_you_mean(replaced, names));
      }
    }
  }

  void check_tags() {
    for (const Argument& argument : f_.schema.arguments) {
      if (argument.type.base().kind() == TypeKind::kGenerator &&
          !f_.has_tag("nondeterministic_seeded")) {
        report(entry_.in_func(argument.type_offset),
               "an operator with a Generator draws random numbers: add 'tags: "
               "nondeterministic_seeded'");
        break;
      }
    }
    if (f_.has_tag("view_copy") && !f_.schema.name.name.ends_with("_copy") &&
        !f_.schema.name.name.ends_with("_scatter") && !f_.schema.name.name.ends_with("_inverse")) {
      report(entry_.place("tags"), "an operator with tag 'view_copy' is named like the view with "
                                   "'_copy' added");
    }
    if (f_.has_tag("inplace_view") && f_.kind() != SchemaKind::kInplace) {
      report(entry_.place("tags"), "tag 'inplace_view' is for operators that change their 'self' in "
                                   "place");
    }
  }

  void check_autogen() {
    if (!entry_.has("autogen")) return;
    const Location where = entry_.keys.at("autogen");
    if (f_.kind() == SchemaKind::kOut) {
      report(where, "'autogen' makes functional and out variants; write it at the functional or "
                    "in-place form");
      return;
    }
    if (f_.schema.is_view()) {
      report(where, "'autogen' cannot make variants of a view");
      return;
    }
    if (f_.has_composite_implicit_kernel() && !f_.default_dispatch) {
      report(where, "'autogen' cannot make variants of an operator with a CompositeImplicitAutograd "
                    "kernel: the operators that it calls have them");
      return;
    }
    if (f_.manual_kernel_registration) {
      report(where, "'autogen' cannot make variants of an operator with 'manual_kernel_registration'");
      return;
    }
    const auto possible = autogen_schemas(f_.schema);
    std::vector<std::string> allowed;
    for (const FunctionSchema& schema : possible) {
      OperatorName bare = schema.name;
      bare.ns.clear();
      allowed.push_back(bare.str());
    }
    for (const OperatorName& wanted : f_.autogen) {
      OperatorName bare = wanted;
      bare.ns.clear();
      const std::string text = bare.str();
      const bool same_ns = wanted.ns.empty() || wanted.ns == f_.ns;
      if (same_ns && std::ranges::find(allowed, text) != allowed.end()) continue;
      std::string expected;
      for (const std::string& one : allowed) expected += (expected.empty() ? "" : " or ") + one;
      report(entry_.place("autogen"),
             "'autogen' cannot make '" + wanted.str() + "' from this operator; " +
                 (allowed.empty() ? "it returns no tensor" : "expected " + expected));
    }
  }

  const Entry& entry_;
  const NativeFunction& f_;
  Diagnostics& diagnostics_;
};

class ModelCheck {
 public:
  ModelCheck(const std::deque<Entry>& entries, const Model& model, Diagnostics& diagnostics)
      : model_(model), diagnostics_(diagnostics) {
    for (const NativeFunction& function : model.functions) {
      by_name_.emplace(function.full_name(), &function);
      bases_.emplace(function.ns + "::" + function.schema.name.name, &function);
    }
    for (const Entry& entry : entries) {
      entries_.emplace(entry.func.get(), &entry);
      check_delegate(entry);
      check_tag_bases(entry);
    }
    check_groups(entries);
  }

 private:
  void report(const Entry& entry, Location where, const std::string& message) {
    diagnostics_.add(where, entry.function.schema.name.str() + ": " + message);
  }

  void check_delegate(const Entry& entry) {
    const NativeFunction& f = entry.function;
    if (!f.structured_delegate) return;
    const std::string target = f.ns + "::" + f.structured_delegate->str();
    auto found = by_name_.find(target);
    const Location where = entry.place("structured_delegate");
    if (found == by_name_.end()) {
      std::vector<std::string_view> names;
      std::vector<std::string> kept;
      for (const NativeFunction& other : model_.functions) {
        if (other.structured && other.ns == f.ns) kept.push_back(other.schema.name.str());
      }
      names.assign(kept.begin(), kept.end());
      report(entry, where, "no operator is named '" + f.structured_delegate->str() + "'" +
                               did_you_mean(f.structured_delegate->str(), names));
    } else if (!found->second->structured) {
      report(entry, where, "'" + f.structured_delegate->str() +
                               "' is not structured; add 'structured: True' to it");
    } else if (f.kind() != SchemaKind::kOut &&
               variant_signature(f) != variant_signature(*found->second)) {
      report(entry, where, "'" + f.structured_delegate->str() +
                               "' is not the out variant of this operator: its arguments or returns "
                               "differ");
    }
  }

  void check_tag_bases(const Entry& entry) {
    const NativeFunction& f = entry.function;
    const std::string& name = f.schema.name.name;
    if (f.has_tag("inplace_view") && f.kind() == SchemaKind::kInplace && name != "resize_" &&
        name != "resize_as_") {
      const std::string base = f.schema.name.base_name();
      if (!bases_.contains(f.ns + "::" + base)) {
        report(entry, entry.place("tags"), "an operator with tag 'inplace_view' needs the view that "
                                           "it is the in-place form of: declare '" + base + "'");
      }
    }
    if (f.has_tag("view_copy") && name.ends_with("_copy")) {
      std::string base = name.substr(0, name.size() - 5);
      if (!bases_.contains(f.ns + "::" + base)) {
        report(entry, entry.place("tags"), "an operator with tag 'view_copy' needs the view that it "
                                           "copies: declare '" + base + "'");
      }
    }
  }

  const Entry* entry_of(const NativeFunction* function, const std::deque<Entry>& entries) const {
    for (const Entry& entry : entries) {
      if (entry.function.full_name() == function->full_name()) return &entry;
    }
    return nullptr;
  }

  void check_groups(const std::deque<Entry>& entries) {
    for (const NativeFunctionGroup& group : model_.groups) {
      if (!group.structured()) continue;
      const Entry* out = entry_of(group.out, entries);
      if (group.functional == nullptr) {
        report(*out, out->keys.at("structured"),
               "a structured out variant needs its functional form: declare one with the same "
               "arguments but 'out', and 'structured_delegate: " + out->function.schema.name.str() +
                   "'");
      }
      for (const NativeFunction* member : {group.functional, group.inplace}) {
        if (member == nullptr || member->structured_delegate) continue;
        const Entry* entry = entry_of(member, entries);
        if (entry == nullptr) continue;
        report(*entry, entry->func->where,
               "its out variant is structured: add 'structured_delegate: " +
                   [&] {
                     OperatorName bare = group.out->schema.name;
                     bare.ns.clear();
                     return bare.str();
                   }() + "'");
      }
    }
  }

  const Model& model_;
  Diagnostics& diagnostics_;
  std::unordered_map<std::string, const NativeFunction*> by_name_;
  std::unordered_map<std::string, const NativeFunction*> bases_;
  std::unordered_map<const YamlNode*, const Entry*> entries_;
};

}  // namespace

void check_entry(const Entry& entry, Diagnostics& diagnostics) {
  EntryCheck(entry, diagnostics).run();
}

void check_entries(const std::deque<Entry>& entries, const Model& model, Diagnostics& diagnostics) {
  ModelCheck check(entries, model, diagnostics);
}

}  // namespace lamella::codegen
