// Checks of one entry that involve several of its fields.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "codegen/entry_reader.h"
#include "lamella/schema/alias_check.h"
#include "lamella/schema/suggest.h"

namespace lamella::codegen {
namespace {

// Keys whose kernels the structured entry itself names, so that its delegates must not.
constexpr std::array<std::string_view, 6> kStructuredKeys = {"CPU", "CUDA", "MPS",
                                                             "XPU", "MTIA", "Meta"};

// `from` is a keyword too, but an argument may have the name: it is then positional only in Python.
constexpr std::array<std::string_view, 34> kPythonKeywords = {
    "False",  "None",     "True",   "and", "as",    "assert", "async",    "await",   "break",
    "class",  "continue", "def",    "del", "elif",  "else",   "except",   "finally", "for",
    "global", "if",       "import", "in",  "is",    "lambda", "nonlocal", "not",     "or",
    "pass",   "raise",    "return", "try", "while", "with",   "yield"};

class EntryCheck {
 public:
  EntryCheck(const LocatedEntry& entry, Diagnostics& diagnostics)
      : entry_(entry), f_(entry.function), diagnostics_(diagnostics) {}

  void run() {
    check_schema();
    check_types();
    check_variants();
    check_dispatch();
    check_structured();
    check_ufunc_loops();
    check_alias_sets();
    check_arguments();
    check_tags();
    check_policies();
    check_alias();
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
        report(entry_.in_func(argument.type_offset),
               "no code can be written for an argument of type '" + argument.type.str() + "'");
      }
      if (std::ranges::find(kPythonKeywords, argument.name) != kPythonKeywords.end()) {
        report(
            entry_.in_func(argument.name_offset),
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
      // The key for nested tensors may accompany another composite key, which does not cover them.
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
      report(kernel.second.key, "'" + kept + "' takes precedence over '" + dead +
                                    "', whose kernel would never run; keep one of them");
    }
  }

  // The name that an out variant of this operator has by default.
  std::string out_name() const {
    const std::string& overload = f_.schema.name.overload_name;
    return f_.schema.name.base_name() + "." + (overload.empty() ? "" : overload + "_") + "out";
  }

  // The field that declares the entry structured.
  Location structured_field() const {
    return entry_.keys.at(f_.pointwise ? "pointwise" : "structured");
  }

  void check_structured() {
    if (f_.structured && f_.structured_delegate) {
      report(entry_.keys.at("structured_delegate"),
             "an operator is 'structured' or has a 'structured_delegate', not both");
      return;
    }
    if (f_.structured) {
      const bool names_others = f_.kind() == SchemaKind::kFunctional && entry_.has("autogen");
      if (f_.kind() != SchemaKind::kOut && !names_others) {
        report(structured_field(),
               f_.pointwise
                   ? "'pointwise' belongs to the out variant, or to a functional form that "
                     "makes it: 'autogen: " +
                         out_name() + "'"
                   : "'structured' belongs to the out variant: here write "
                     "'structured_delegate: " +
                         out_name() + "', or let the functional form make the others: 'autogen: " +
                         out_name() + "'");
      }
      if (f_.dispatch.empty() && f_.ufunc_inner_loop.empty()) {
        report(structured_field(),
               "a structured operator needs 'dispatch' with a kernel for each backend");
      }
      for (const auto& [key, kernel] : f_.dispatch) {
        if (key.starts_with("CompositeImplicit")) {
          report(kernel.key, "a structured operator has a kernel for each backend; '" + key +
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
          report(kernel.key, "the kernel for " + key + " comes from '" +
                                 f_.structured_delegate->str() +
                                 "', to which the operator delegates; drop this one");
        }
      }
    }
    if (f_.is_structured() && !f_.device_guard) {
      report(entry_.place("device_guard"),
             "a structured operator always guards its device; drop "
             "'device_guard: False'");
    }
    for (const char* field : {"structured", "structured_delegate", "structured_inherits",
                              "device_check", "ufunc_inner_loop"}) {
      if (f_.pointwise && entry_.has(field)) {
        report(entry_.keys.at(field),
               "'pointwise' says it already; drop '" + std::string(field) + "'");
      }
    }
    for (const char* field : {"structured_inherits", "precomputed", "ufunc_inner_loop"}) {
      if (entry_.has(field) && !f_.structured) {
        report(entry_.keys.at(field), "'" + std::string(field) + "' needs 'structured: True'");
      }
    }
    for (std::string_view key : {"CPU", "CUDA"}) {
      const Kernel* kernel = f_.find_kernel(key);
      if (kernel != nullptr && !f_.ufunc_inner_loop.empty()) {
        report(kernel->key, "the kernel for " + std::string(key) +
                                " is made from 'ufunc_inner_loop'; drop one of them");
      }
    }
  }

  const UfuncLoop* ufunc_loop(std::string_view key) const {
    auto found = std::ranges::find(f_.ufunc_inner_loop, key, &UfuncLoop::key);
    return found != f_.ufunc_inner_loop.end() ? &*found : nullptr;
  }

  void check_ufunc_loops() {
    if (f_.ufunc_inner_loop.empty()) return;
    const Location& at = entry_.keys.at("ufunc_inner_loop");
    const UfuncLoop* generic = ufunc_loop("Generic");
    const UfuncLoop* scalar = ufunc_loop("ScalarOnly");
    if (generic != nullptr && scalar != nullptr && generic->function != scalar->function) {
      report(at,
             "Generic and ScalarOnly are the loops of one function for different dtypes, got '" +
                 generic->function + "' and '" + scalar->function + "'");
    }
    const auto tensors = std::ranges::count_if(f_.schema.arguments, [](const Argument& argument) {
      return !argument.is_out() && argument.type.holds_tensor();
    });
    if (tensors == 2) return;
    for (const char* key : {"CUDAFunctorOnSelf", "CUDAFunctorOnOther"}) {
      if (ufunc_loop(key) == nullptr) continue;
      report(at, std::string(key) +
                     " reads one of two tensors as a number: expected an operator "
                     "of two tensors, got " +
                     std::to_string(tensors));
    }
  }

  // An argument that is written is in one alias set, and a set becomes several or was, not both.
  void check_alias_sets() {
    for (const Argument& argument : f_.schema.arguments) {
      for (const AliasInfo& alias : argument.aliases) {
        if (alias.before.size() == 1) continue;
        if (alias.is_write) {
          report(f_.where, "what is written is in one alias set, got '" + argument.str() + "'");
        } else if (alias.after.size() > 1 && alias.before != alias.after) {
          report(f_.where, "one side of '->' has one alias set, got '" + argument.str() + "'");
        }
      }
    }
  }

  std::vector<std::string_view> argument_names() const {
    std::vector<std::string_view> names;
    names.reserve(f_.schema.arguments.size());
    for (const Argument& argument : f_.schema.arguments) names.push_back(argument.name);
    return names;
  }

  // The place of item `index` of a field that holds a list.
  Location item_place(const std::string& field, std::size_t index) const {
    const YamlPtr& value = entry_.values.at(field);
    return index < value->items.size() ? value->items[index]->where : value->where;
  }

  void check_arguments() {
    if (f_.cpp_no_default_args.empty() && f_.precomputed.empty()) return;
    const auto names = argument_names();
    std::unordered_map<std::string_view, const Argument*> by_name;
    for (const Argument& argument : f_.schema.arguments) by_name.emplace(argument.name, &argument);
    // Suggestions compare a name with all others, so only the first wrong names get one.
    constexpr int kMaxHints = 20;
    int wrong = 0;
    const auto hint = [&](const std::string& wanted) {
      return wrong++ < kMaxHints ? did_you_mean(wanted, names) : "";
    };
    for (std::size_t i = 0; i < f_.cpp_no_default_args.size(); ++i) {
      const std::string& wanted = f_.cpp_no_default_args[i];
      const auto found = by_name.find(wanted);
      const Argument* argument = found == by_name.end() ? nullptr : found->second;
      if (argument == nullptr) {
        report(item_place("cpp_no_default_args", i),
               "no argument is named '" + wanted + "'" + hint(wanted));
      } else if (!argument->default_value) {
        report(item_place("cpp_no_default_args", i),
               "'" + wanted + "' has no default to leave out");
      }
    }
    for (std::size_t i = 0; i < f_.precomputed.size(); ++i) {
      const std::string& replaced = f_.precomputed[i].replaced;
      if (!replaced.empty() && !by_name.contains(replaced)) {
        report(item_place("precomputed", i),
               "no argument is named '" + replaced + "'" + hint(replaced));
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
      report(entry_.place("tags"),
             "an operator with tag 'view_copy' is named like the view with "
             "'_copy' added");
    }
    if (f_.has_tag("inplace_view") && f_.kind() != SchemaKind::kInplace) {
      report(entry_.place("tags"),
             "tag 'inplace_view' is for operators that change their 'self' in "
             "place");
    }
  }

  void check_policies() {
    if (!f_.autocast.empty() && f_.autocast != "none") {
      if (f_.kind() != SchemaKind::kFunctional) {
        report(entry_.place("autocast"),
               "autocast never casts what an operator writes: only 'autocast: none' fits here");
      } else if (std::ranges::none_of(f_.schema.arguments, [](const Argument& argument) {
                   return argument.type.holds_tensor();
                 })) {
        report(entry_.place("autocast"), "there is no tensor among the arguments to cast");
      }
    }
    if (f_.batching == "composite" && !f_.has_composite_kernel() &&
        !f_.manual_kernel_registration) {
      report(entry_.place("batching"),
             "'batching: composite' runs a composite kernel under vmap, but the entry has none");
    }
    if (!f_.hlo.empty() && f_.kind() != SchemaKind::kFunctional) {
      report(entry_.place("hlo"),
             "an HLO opcode writes none of its operands: say it of the "
             "functional form");
    }
  }

  void check_alias() {
    if (f_.alias_of.empty()) return;
    for (const char* field : {"dispatch", "structured", "structured_delegate", "pointwise",
                              "manual_kernel_registration"}) {
      if (entry_.has(field)) {
        report(entry_.keys.at(field),
               "what 'alias_of' names has the kernel; drop '" + std::string(field) + "'");
      }
    }
  }

  void check_autogen() {
    if (!entry_.has("autogen")) return;
    const Location where = entry_.keys.at("autogen");
    if (f_.kind() == SchemaKind::kOut && !f_.structured) {
      report(where,
             "'autogen' at an out variant needs 'structured: True'; write it at the functional "
             "or in-place form");
      return;
    }
    if (f_.schema.is_view()) {
      report(where, "'autogen' cannot make variants of a view");
      return;
    }
    const bool names_outs =
        !f_.autogen.empty() &&
        std::ranges::all_of(f_.autogen, [](const Autogen& wanted) { return !wanted.outs.empty(); });
    if (names_outs && f_.kind() != SchemaKind::kFunctional) {
      report(where,
             "an out form with named out arguments copies what a functional form computes; "
             "write it at that");
      return;
    }
    if (f_.has_composite_implicit_kernel() && !f_.default_dispatch && !names_outs) {
      report(where,
             "'autogen' cannot make variants of an operator with a CompositeImplicitAutograd "
             "kernel: the operators that it calls have them");
      return;
    }
    if (f_.manual_kernel_registration) {
      report(where,
             "'autogen' cannot make variants of an operator with 'manual_kernel_registration'");
      return;
    }
    std::string expected;
    for (const OperatorName& name : autogen_names(f_.schema)) {
      expected += (expected.empty() ? "" : " or ") + name.str();
    }
    for (const Autogen& wanted : f_.autogen) {
      const bool same_ns = wanted.name.ns.empty() || wanted.name.ns == f_.ns;
      if (same_ns && autogen_schema(f_.schema, wanted)) continue;
      report(entry_.place("autogen"),
             "'autogen' cannot make '" + wanted.name.str() + "' from this operator; " +
                 (expected.empty() ? "it returns no tensor" : "expected " + expected));
    }
  }

  const LocatedEntry& entry_;
  const NativeFunction& f_;
  Diagnostics& diagnostics_;
};

}  // namespace

void check_entry(const LocatedEntry& entry, Diagnostics& diagnostics) {
  EntryCheck(entry, diagnostics).run();
}

}  // namespace lamella::codegen
