// The C++ API: class Tensor, one header per operator name, and headers that gather them.
//
// Note [Bodies are templates]
//   Generated functions and methods are templates over an int that always has its default. Their
//   parameters do not depend on it, so calls look and convert as for plain functions, but their
//   bodies do: only those that are called are compiled. Likewise ops::add_Tensor is an alias of a
//   class template, which is instantiated when an expression names it. So including a thousand
//   operators costs only their declarations. Optionals are passed by reference, because the type of
//   a by-value parameter is instantiated with the definition, called or not.
#include <algorithm>
#include <set>

#include "codegen/cpp.h"
#include "codegen/templates.h"

namespace lamella::codegen {
namespace {

constexpr std::string_view kLazy = "template <int lazy_ = 0>\n";

// One C++ overload of an operator: its parameters and the arguments that it passes on.
struct Overload {
  std::vector<Parameter> parameters;
  std::vector<std::string> passed;  // in schema order
  bool has_options = false;
};

Overload plain(const NativeFunction& function, bool with_defaults) {
  Overload overload{parameters(function), {}};
  for (Parameter& p : overload.parameters) {
    overload.passed.push_back(p.name);
    if (!with_defaults) p.default_value.clear();
  }
  return overload;
}

// dtype, layout, device and pin_memory as one TensorOptions.
Overload with_options(const NativeFunction& function, int at, const std::string& detail) {
  Overload overload = plain(function, true);
  overload.has_options = true;
  auto& list = overload.parameters;
  const auto first = list.begin() + at;
  const bool all_default =
      std::all_of(first, first + 4, [](const Parameter& p) { return !p.default_value.empty(); });
  const std::string dtype = first->default_value;
  Parameter options{"const TensorOptions&", "options", "", nullptr};
  if (all_default) {
    options.default_value = dtype == "std::nullopt" ? "{}" : "TensorOptions(" + dtype + ")";
  }
  constexpr const char* parts[] = {"dtype", "layout", "device", "pinned_memory"};
  for (int i = 0; i < 4; ++i) {
    const Parameter& p = first[i];
    std::string text = std::string("options.") + parts[i];
    text += p.argument->type.is_optional() ? "_opt()" : "()";
    overload.passed[static_cast<size_t>(at + i)] = text;
  }
  list.erase(first, first + 4);
  list.insert(list.begin() + at, options);
  // A memory format may come as part of the options as well.
  for (size_t i = 0; i < overload.passed.size(); ++i) {
    if (overload.passed[i] == "memory_format") {
      overload.passed[i] = detail + "memory_format_of<lazy_>(memory_format, options)";
    }
  }
  // Parameters before one without a default cannot have a default.
  bool open = true;
  for (auto p = list.rbegin(); p != list.rend(); ++p) {
    if (p->default_value.empty()) open = false;
    if (!open) p->default_value.clear();
  }
  return overload;
}

std::string declare_lazily(std::vector<Parameter> list, bool with_defaults) {
  for (Parameter& p : list) {
    if (p.type.rfind("std::optional<", 0) == 0) p.type = "const " + p.type + "&";
  }
  return declare(list, with_defaults);
}

std::string type_key(const std::string& name, const std::vector<Parameter>& list) {
  std::string key = name + "(";
  for (const Parameter& p : list) put(key, p.type, ",");
  return key;
}

// Everything that is declared for the operators of one base name.
class Header {
 public:
  explicit Header(const EmitOptions& options)
      : detail_(options.out_of_tree ? "::lamella::detail::" : "detail::") {}

  void add_operator(const NativeFunction& f) {
    add_struct(f);
    if (f.function_variant) add_functions(f);
    add_redispatch(f);
    if (f.method_variant && !f.manual_cpp_binding) add_methods(f);
  }

  std::string ops, functions, redispatch, method_declarations, method_definitions, method_bodies;

 private:
  void add_struct(const NativeFunction& f) {
    const std::string name = operator_struct(f.schema);
    FunctionSchema bare = f.schema;
    bare.name.ns.clear();
    put(ops, "struct ", name, "_entry {\n  static constexpr const char* texts = ",
        in_quotes(f.ns + "::" + f.schema.name.name), " \"\\0\" ",
        in_quotes(f.schema.name.overload_name), " \"\\0\"\n      ", in_quotes(bare.str()),
        ";\n};\nusing ", name, " = ::lamella::detail::Operator<", name, "_entry, ",
        function_type(f), ">;\n");
  }

  // `requires_grad` of the options is not an argument of the operator: it is set on a factory's
  // result. Operators that may return an argument reject options with it.
  std::string call_text(const NativeFunction& f, const std::vector<std::string>& passed,
                        bool has_options) {
    std::string text;
    put(text, detail_, "Lazy<lazy_, ops::", operator_struct(f.schema), ">::call(",
        join(passed, ", "), ")");
    if (!has_options || return_type(f) != "Tensor") return text;
    const bool is_alias = f.schema.returns[0].alias() != nullptr;
    std::string wrapped;
    put(wrapped, detail_, is_alias ? "without_requires_grad" : "with_requires_grad", "(", text,
        ", options", is_alias ? ", " + in_quotes(f.schema.name.name) : "", ")");
    return wrapped;
  }

  void function(const NativeFunction& f, const std::string& name, const Overload& overload) {
    if (!seen_.insert(type_key(name, overload.parameters)).second) return;
    put(functions, kLazy, "inline ", return_type(f), " ", name, "(",
        declare_lazily(overload.parameters, true), ") {\n  return ",
        call_text(f, overload.passed, overload.has_options), ";\n}\n");
  }

  void add_functions(const NativeFunction& f) {
    if (f.manual_cpp_binding) return;
    const std::string name = function_name(f);
    if (f.kind() == SchemaKind::kOut) {
      Overload first = plain(f, true);
      std::stable_partition(first.parameters.begin(), first.parameters.end(),
                            [](const Parameter& p) { return p.argument->is_out(); });
      function(f, name, first);
      Overload last = plain(f, false);
      function(f, name + "f", last);
      return;
    }
    const int at = tensor_options_at(f.schema);
    if (at >= 0) {
      function(f, name, with_options(f, at, detail_));
      function(f, name, plain(f, false));
    } else {
      function(f, name, plain(f, true));
    }
  }

  void add_redispatch(const NativeFunction& f) {
    if (f.manual_cpp_binding) return;
    std::string name = function_name(f);
    Overload overload = plain(f, f.kind() != SchemaKind::kOut);
    auto emit = [&](const std::string& as, const Overload& one) {
      if (!seen_.insert("redispatch " + type_key(as, one.parameters)).second) return;
      std::string list = declare_lazily(one.parameters, true);
      put(redispatch, kLazy, "inline ", return_type(f), " ", as, "(DispatchKeySet keys",
          list.empty() ? "" : ", ", list, ") {\n  return ", detail_,
          "Lazy<lazy_, ops::", operator_struct(f.schema), ">::redispatch(keys",
          one.passed.empty() ? "" : ", ", join(one.passed, ", "), ");\n}\n");
    };
    if (f.kind() == SchemaKind::kOut) {
      emit(name + "f", overload);
      std::stable_partition(overload.parameters.begin(), overload.parameters.end(),
                            [](const Parameter& p) { return p.argument->is_out(); });
    }
    emit(name, overload);
    const int at = tensor_options_at(f.schema);
    if (at >= 0 && f.kind() != SchemaKind::kOut) emit(name, with_options(f, at, detail_));
  }

  void method(const NativeFunction& f, Overload overload) {
    const auto self = std::find_if(overload.parameters.begin(), overload.parameters.end(),
                                   [](const Parameter& p) { return p.name == "self"; });
    const bool writes = self->type == "Tensor&";
    overload.parameters.erase(self);
    for (std::string& passed : overload.passed) {
      if (passed != "self") continue;
      passed = writes ? "const_cast<Tensor&>(*this)" : "*this";
    }
    const std::string name = function_name(f);
    if (!seen_.insert("method " + type_key(name, overload.parameters)).second) return;
    const std::string returns = return_type(f);
    put(method_declarations, "  template <int = 0>\n  ", returns, " ", name, "(",
        declare_lazily(overload.parameters, true), ") const;\n");
    // Out of tree, the class has its method bodies inside.
    put(method_bodies, "  template <int lazy_ = 0>\n  ", returns, " ", name, "(",
        declare_lazily(overload.parameters, true),
        ") const {\n    const ::lamella::Tensor& self = *this;\n", "    return ",
        call_text(f, with_self(overload.passed), overload.has_options), ";\n  }\n");
    put(method_definitions, "template <int lazy_>\ninline ", returns, " Tensor::", name, "(",
        declare_lazily(overload.parameters, false), ") const {\n  return ",
        call_text(f, overload.passed, overload.has_options), ";\n}\n");
  }

  static std::vector<std::string> with_self(std::vector<std::string> passed) {
    for (std::string& one : passed) {
      if (one == "*this") one = "self";
      if (one == "const_cast<Tensor&>(*this)") one = "const_cast<::lamella::Tensor&>(self)";
    }
    return passed;
  }

  void add_methods(const NativeFunction& f) {
    const int at = tensor_options_at(f.schema);
    if (at >= 0) {
      method(f, with_options(f, at, detail_));
      method(f, plain(f, false));
    } else {
      method(f, plain(f, true));
    }
  }

  // The prefix of names in lamella::detail; short within namespace lamella, because looking up the
  // full one takes a third of the compile time of the bodies.
  const std::string detail_;
  std::set<std::string> seen_;
};

std::string open_namespaces(const std::string& ns) { return "namespace " + ns + " {\n"; }
std::string close_namespaces(const std::string& ns) { return "}  // namespace " + ns + "\n"; }

}  // namespace

namespace {

// One header for all operators of another library, and one with its methods.
void emit_api_out_of_tree(const Model& model, const EmitOptions& options, Files& files) {
  std::map<std::string, Header> headers;  // by namespace
  for (const NativeFunction& function : model.functions) {
    headers.try_emplace(function.ns, options).first->second.add_operator(function);
  }
  std::string text = banner(options, "Calls of this library's operators.");
  std::string methods = banner(
      options, "Tensor with this library's operators as methods; any lamella::Tensor becomes one.");
  put(text, "#pragma once\n\n#include \"lamella/api/operator.h\"\n");
  put(methods, "#pragma once\n\n#include \"", options.target, "/functions.h\"\n");
  for (const auto& [ns, header] : headers) {
    std::string body;
    put(body, "\n", open_namespaces(ns), "namespace ops {\n", header.ops, "}  // namespace ops\n\n",
        header.functions, "\nnamespace redispatch {\n", header.redispatch,
        "}  // namespace redispatch\n", close_namespaces(ns));
    text += qualified(body, options);
    // A namespace of its own, so that `Tensor` in the kernels still means Lamella's.
    put(methods, "\n", open_namespaces(ns + "::methods"),
        "class Tensor : public ::lamella::Tensor {\n public:\n  Tensor() = default;\n",
        "  Tensor(const ::lamella::TensorBase& base) : ::lamella::Tensor(base) {}  // NOLINT\n",
        qualified(header.method_bodies, options), "};\n", close_namespaces(ns + "::methods"));
  }
  files[options.target + "/functions.h"] = text;
  if (options.methods) files[options.target + "/tensor.h"] = methods;
}

}  // namespace

void emit_api(const Model& model, const EmitOptions& options, Files& files) {
  if (options.out_of_tree) {
    emit_api_out_of_tree(model, options, files);
    return;
  }
  // By header, in order of first appearance.
  std::vector<std::string> stems;
  std::map<std::string, Header> headers;
  std::map<std::string, std::string> namespaces;
  for (const NativeFunction& function : model.functions) {
    const std::string stem = header_stem(function);
    auto [place, fresh] = headers.try_emplace(stem, options);
    if (fresh) {
      stems.push_back(stem);
      namespaces[stem] = cpp_namespace(function, options);
    }
    place->second.add_operator(function);
  }
  std::sort(stems.begin(), stems.end());

  std::string all = banner(options, "Every operator as a function and a method.");
  std::string redispatch = banner(
      options, "Every operator with the key set to dispatch on: redispatch::add(keys, a, b).");
  put(all, "#pragma once\n\n");
  put(redispatch, "#pragma once\n\n#include \"lamella/api/functions.h\"\n\n");
  std::string tensor_methods;
  for (const std::string& stem : stems) {
    const Header& header = headers.at(stem);
    const std::string& ns = namespaces[stem];
    put(all, "#include \"lamella/api/ops/", stem, ".h\"\n");
    std::string text = banner(options, "Calls of the operators named here.");
    put(text, "#pragma once\n\n#include \"lamella/api/operator.h\"\n\n", open_namespaces(ns),
        "namespace ops {\n", header.ops, "}  // namespace ops\n\n", header.functions);
    if (ns == "lamella" && !header.method_definitions.empty()) {
      put(text, "\n", header.method_definitions);
    }
    put(text, close_namespaces(ns));
    if (ns != "lamella" && !header.method_definitions.empty()) {
      std::string definitions = header.method_definitions;
      for (size_t at = 0; (at = definitions.find("ops::", at)) != std::string::npos;) {
        definitions.insert(at, ns + "::");
        at += ns.size() + 7;
      }
      put(text, "\nnamespace lamella {\n", definitions, "}  // namespace lamella\n");
    }
    files["lamella/api/ops/" + stem + ".h"] = text;
    put(redispatch, open_namespaces(ns), "namespace redispatch {\n", header.redispatch,
        "}  // namespace redispatch\n", close_namespaces(ns));
    put(tensor_methods, header.method_declarations);
  }
  files["lamella/api/functions.h"] = all;
  files["lamella/api/redispatch.h"] = redispatch;
  files["lamella/api/tensor.h"] =
      banner(options, "Tensor: a reference to a tensor, with the operators as methods.") +
      fill(kTensorTemplate, {{"METHODS", tensor_methods}});
}

}  // namespace lamella::codegen
