// Emits the Python side: the table of names for the extension module, type stubs, and for an
// out-of-tree library a module that loads it.
//
// A function's stub is written once for its functional form; an out form that takes the same
// arguments becomes its `out` keyword.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "codegen/cpp.h"
#include "codegen/docs.h"
#include "codegen/templates.h"
#include "codegen/variants.h"

namespace lamella::codegen {
namespace {

// linalg_det in module linalg is det; gelu in nn stays.
std::string python_name(const NativeFunction& f) {
  std::string name = f.schema.name.name;
  const std::string prefix = f.python_module + "_";
  if (!f.python_module.empty() && name.starts_with(prefix)) name.erase(0, prefix.size());
  return name;
}

std::string python_identifier(const std::string& name) {
  static const std::set<std::string> reserved = {
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  return reserved.contains(name) ? name + "_" : name;
}

// ---- Hints ----

std::string hint(SchemaType type) {
  switch (type.kind()) {
    case TypeKind::kTensor:
      return "Tensor";
    case TypeKind::kInt:
      return "_int";
    case TypeKind::kFloat:
      return "_float";
    case TypeKind::kBool:
      return "_bool";
    case TypeKind::kComplex:
      return "_Scalar";
    case TypeKind::kStr:
      return "_str";
    case TypeKind::kScalar:
      return "_Scalar";
    case TypeKind::kGenerator:
      return "Generator";
    case TypeKind::kScalarType:
      return "_dtype";
    case TypeKind::kLayout:
      return "_layout";
    case TypeKind::kDevice:
      return "_Device";
    case TypeKind::kMemoryFormat:
      return "_memory_format";
    case TypeKind::kOptional: {
      const std::string inner = hint(type.element());
      return inner == "_Device" || inner == "Any" ? inner : inner + " | None";
    }
    case TypeKind::kList: {
      const SchemaType element = type.element();
      if (element.kind() == TypeKind::kInt) return type.fixed_size() ? "_int | _Size" : "_Size";
      return "Sequence[" + hint(element) + "]";
    }
    default:
      return "Any";
  }
}

std::string return_hint(SchemaType type) {
  if (type.is_list()) {
    return type.element().is_tensor() ? "tuple[Tensor, ...]"
                                      : "list[" + return_hint(type.element()) + "]";
  }
  if (type.kind() == TypeKind::kScalar) return "Any";
  return hint(type);
}

std::string default_hint(const Argument& argument) {
  const DefaultValue& value = *argument.default_value;
  if (value.is_none()) return argument.type.is_optional() ? "None" : "...";
  if (const bool* flag = std::get_if<bool>(&value.value)) return *flag ? "True" : "False";
  const TypeKind kind = argument.type.without_optional().kind();
  if (const int64_t* number = std::get_if<int64_t>(&value.value)) {
    return kind == TypeKind::kInt || kind == TypeKind::kScalar ? std::to_string(*number) : "...";
  }
  if (const double* number = std::get_if<double>(&value.value)) {
    return std::isfinite(*number) ? value.str() : "...";
  }
  if (const auto* text = std::get_if<std::string>(&value.value)) return in_quotes(*text);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value.value)) {
    std::vector<std::string> parts;
    for (int64_t item : *list) parts.push_back(std::to_string(item));
    return "(" + join(parts, ", ") + (parts.size() == 1 ? ",)" : ")");
  }
  return "...";
}

// True if the operator makes a new tensor, so it also takes Python's `requires_grad`.
bool is_factory(const NativeFunction& f) {
  const std::string& name = f.schema.name.name;
  for (const char* option : {"dtype", "layout", "device", "pin_memory"}) {
    if (f.schema.find_argument(option) == nullptr) return false;
  }
  if (name.starts_with("new_") || name.ends_with("_like")) return true;
  return std::ranges::none_of(f.schema.arguments, [](const Argument& argument) {
    return argument.type.without_optional().is_tensor();
  });
}

// ---- Stubs of functions ----

class Stubs {
 public:
  explicit Stubs(const Model& model) : docs_(docs_by_name(model)) {
    for (const NativeFunctionGroup& group : model.groups) {
      if (group.functional != nullptr && group.out != nullptr) {
        out_of_.emplace(group.functional, group.out);
        has_functional_.insert(group.out);
      }
    }
  }

  // Named results used so far.
  const std::string& results() const { return results_; }

  // All signatures for one name. A method has `self` first; a function names it `input`.
  std::string write(const std::string& name, const std::vector<const NativeFunction*>& overloads,
                    bool method, const std::string& indent) {
    std::vector<std::string> signatures;
    for (const NativeFunction* f : overloads) {
      // Merged into the functional form.
      if (has_functional_.contains(f)) continue;
      for (std::string& signature : signatures_of(*f, method)) {
        if (std::ranges::find(signatures, signature) == signatures.end()) {
          signatures.push_back(std::move(signature));
        }
      }
    }
    std::string out;
    // The first of several signatures has the text of all.
    const NativeFunction& first = *overloads.front();
    const auto doc = docs_.find(first.ns + "::" + first.schema.name.name);
    for (const std::string& signature : signatures) {
      if (signatures.size() > 1) put(out, indent, "@overload\n");
      put(out, indent, "def ", name, signature, ":");
      if (doc == docs_.end() || &signature != &signatures.front()) {
        put(out, " ...\n");
      } else {
        put(out, "\n", docstring(doc->second, indent + "    "));
      }
    }
    return out;
  }

 private:
  std::string return_text(const NativeFunction& f) {
    const auto& returns = f.schema.returns;
    if (returns.empty()) return "None";
    if (returns.size() == 1) return return_hint(returns[0].type);
    std::vector<std::string> types;
    bool named = true;
    for (const Argument& result : returns) {
      types.push_back(return_hint(result.type));
      named = named && !result.name.empty();
    }
    if (!named) return "tuple[" + join(types, ", ") + "]";
    std::string fields;
    for (size_t i = 0; i < returns.size(); ++i) {
      put(fields, "    ", python_identifier(returns[i].name), ": ", types[i], "\n");
    }
    const std::string name = "_" + f.schema.name.base_name() + "_result";
    auto [place, fresh] = result_fields_.emplace(name, fields);
    // Overloads that name their results differently are plain tuples.
    if (!fresh && place->second != fields) return "tuple[" + join(types, ", ") + "]";
    if (fresh) put(results_, "class ", name, "(NamedTuple):\n", fields, "\n");
    return name;
  }

  std::vector<std::string> signatures_of(const NativeFunction& f, bool method) {
    std::vector<std::string> positional, keyword;
    std::string vararg;
    int lists = 0, others = 0;
    const Argument* self = f.schema.find_argument("self");
    if (method) positional.push_back("self");
    for (const Argument& argument : f.schema.arguments) {
      if (argument.is_out()) continue;
      if (method && &argument == self) continue;
      std::string name = python_identifier(argument.name);
      if (!method && name == "self") name = "input";
      std::string type = hint(argument.type);
      std::string text = name + ": " + type;
      if (argument.default_value) {
        put(text, " = ", default_hint(argument));
      }
      if (argument.kwarg_only) {
        keyword.push_back(text);
        continue;
      }
      const bool open_list = argument.type.is_list() && !argument.type.fixed_size() &&
                             argument.type.element().kind() == TypeKind::kInt;
      if (open_list) {
        ++lists;
        vararg = "*" + name + ": _int";
      } else {
        ++others;
      }
      positional.push_back(text);
    }
    if (is_factory(f)) keyword.push_back("requires_grad: _bool = False");
    if (const auto out = out_of_.find(&f); out != out_of_.end() && !method) {
      std::vector<std::string> types;
      for (const Argument& argument : out->second->schema.arguments) {
        if (argument.is_out()) types.push_back(hint(argument.type));
      }
      keyword.push_back(
          "out: " + (types.size() == 1 ? types[0] : "tuple[" + join(types, ", ") + "]") +
          " | None = None");
    } else if (f.kind() == SchemaKind::kOut) {
      for (const Argument& argument : f.schema.arguments) {
        if (argument.is_out()) {
          keyword.push_back(python_identifier(argument.name) + ": " + hint(argument.type));
        }
      }
    }
    const std::string returns = " -> " + return_text(f);
    auto assemble = [&](const std::vector<std::string>& front, bool star) {
      std::vector<std::string> list = front;
      if (!keyword.empty()) {
        if (star) list.push_back("*");
        list.insert(list.end(), keyword.begin(), keyword.end());
      }
      return "(" + join(list, ", ") + ")" + returns;
    };
    std::vector<std::string> made = {assemble(positional, true)};
    // zeros(2, 3), t.view(-1, 4)
    const int before = !method && self != nullptr ? 1 : 0;
    if (lists == 1 && others == before) {
      std::vector<std::string> front = positional;
      front.back() = vararg;
      made.push_back(assemble(front, false));
    }
    return made;
  }

  std::map<std::string, std::string> docs_;
  std::map<const NativeFunction*, const NativeFunction*> out_of_;
  std::set<const NativeFunction*> has_functional_;
  std::map<std::string, std::string> result_fields_;
  std::string results_;
};

using Overloads = std::map<std::string, std::vector<const NativeFunction*>>;

// Names that the template declares by hand from `start` on: those after `prefix` and "def ".
std::set<std::string> handwritten(std::string_view prefix, std::string_view start = "") {
  std::set<std::string> names;
  const std::string_view whole = kStubTemplate;
  const std::string_view text = whole.substr(whole.find(start));  // throws where it is not there
  const std::string mark = "\n" + std::string(prefix) + "def ";
  for (size_t at = 0; (at = text.find(mark, at)) != std::string_view::npos;) {
    at += mark.size();
    names.emplace(text.substr(at, text.find('(', at) - at));
  }
  // Annotated attributes: "    data: Tensor".
  const std::string line = "\n" + std::string(prefix);
  for (size_t at = 0; !prefix.empty() && (at = text.find(line, at)) != std::string_view::npos;) {
    at += line.size();
    const size_t end = text.find_first_not_of(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789", at);
    if (end != std::string_view::npos && end != at && text[end] == ':') {
      names.emplace(text.substr(at, end - at));
    }
  }
  return names;
}

std::string dtype_stubs() {
  return
#define LAMELLA_SCALAR_TYPE(cpp, name, number, text, ...) #text ": dtype\n"
#include "lamella/core/scalar_type.def"
      ;
}

std::string operator_stubs() {
  std::string out;
  for (const char* name : {"add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or",
                           "xor", "lshift", "rshift"}) {
    put(out, "    def __", name, "__(self, other: Tensor | _Scalar) -> Tensor: ...\n");
    put(out, "    def __r", name, "__(self, other: Tensor | _Scalar) -> Tensor: ...\n");
    put(out, "    def __i", name, "__(self, other: Tensor | _Scalar) -> Tensor: ...\n");
  }
  put(out, "    def __matmul__(self, other: Tensor) -> Tensor: ...\n");
  for (const char* name : {"lt", "le", "gt", "ge"}) {
    put(out, "    def __", name, "__(self, other: Tensor | _Scalar) -> Tensor: ...\n");
  }
  for (const char* name : {"eq", "ne"}) {
    put(out, "    def __", name,
        "__(self, other: Tensor | _Scalar) -> Tensor: ...  # type: ignore[override]\n");
  }
  return out;
}

bool is_operator_member(const std::string& name) {
  return name.starts_with("__") && name.ends_with("__");
}

void emit_names(const Model& model, const EmitOptions& options, Files& files) {
  std::string header = banner(options, "Where Python finds each operator.");
  put(header, "#pragma once\n\n#include <cstddef>\n\nnamespace lamella {\n\n",
      "struct PythonName {\n",
      "  const char* module;    // \"\" for the package itself; linalg, nn, ...\n",
      "  const char* name;      // in that module, or of the method\n",
      "  const char* op;        // aten::add\n", "  const char* overload;  // Tensor, or \"\"\n",
      "  bool is_function;\n  bool is_method;\n};\n\n",
      "// Overloads of one name stand together, in the order of their declarations; an out form "
      "is\n",
      "// an overload of the function's name.\n",
      "extern const PythonName kPythonNames[];\nextern const std::size_t kPythonNameCount;\n\n",
      "}  // namespace lamella\n");
  files["lamella/python_names.h"] = header;

  std::vector<std::pair<std::string, const NativeFunction*>> rows;
  for (const NativeFunction& f : model.functions) {
    if (f.ns != "aten" || skipped_in_python(f)) continue;
    if (!f.function_variant && !f.method_variant) continue;
    rows.emplace_back(f.python_module + "." + python_name(f), &f);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string source = banner(options, "Where Python finds each operator.");
  put(source, "#include \"lamella/python_names.h\"\n\nnamespace lamella {\n\n",
      "const PythonName kPythonNames[] = {\n");
  for (const auto& [key, f] : rows) {
    put(source, "    {", in_quotes(f->python_module), ", ", in_quotes(python_name(*f)), ", ",
        in_quotes(f->ns + "::" + f->schema.name.name), ", ",
        in_quotes(f->schema.name.overload_name), ", ", f->function_variant ? "true" : "false", ", ",
        f->method_variant ? "true" : "false", "},\n");
  }
  if (rows.empty()) put(source, "    {\"\", \"\", \"\", \"\", false, false},\n");
  put(source, "};\nconst std::size_t kPythonNameCount = ", std::to_string(rows.size()),
      ";\n\n}  // namespace lamella\n");
  files["lamella/python_names.cpp"] = source;
}

void emit_stubs(const Model& model, const EmitOptions& options, Files& files) {
  Overloads methods;
  std::map<std::string, Overloads> functions;  // by module
  const std::set<std::string> own_methods = handwritten("    ", "class Tensor:");
  const std::set<std::string> own_functions = handwritten("");
  for (const NativeFunction& f : model.functions) {
    if (f.ns != "aten" || skipped_in_python(f)) continue;
    const std::string name = python_identifier(python_name(f));
    if (is_operator_member(name)) continue;
    if (f.function_variant && (!f.python_module.empty() || !own_functions.contains(name))) {
      functions[f.python_module][name].push_back(&f);
    }
    if (f.method_variant && !own_methods.contains(name)) {
      methods[name].push_back(&f);
    }
  }
  Stubs stubs(model);
  std::string method_text, function_text;
  for (const auto& [name, overloads] : methods) {
    method_text += stubs.write(name, overloads, true, "    ");
  }
  for (const auto& [name, overloads] : functions[""]) {
    function_text += stubs.write(name, overloads, false, "");
  }
  files["python/lamella/__init__.pyi"] = banner(options, "Types of the package.", "#") +
                                         fill(kStubTemplate, {{"DTYPES", dtype_stubs()},
                                                              {"RESULTS", stubs.results()},
                                                              {"OPERATORS", operator_stubs()},
                                                              {"METHODS", method_text},
                                                              {"FUNCTIONS", function_text}});
  for (const auto& [module, overloads_by_name] : functions) {
    if (module.empty()) continue;
    Stubs own(model);
    std::string text;
    for (const auto& [name, overloads] : overloads_by_name) {
      text += own.write(name, overloads, false, "");
    }
    std::string file = banner(options, "Types of the operators in lamella." + module + ".", "#");
    put(file, "# mypy: disable-error-code=\"overload-overlap, overload-cannot-match, misc\"\n",
        "from collections.abc import Sequence\n",
        "from typing import Any, NamedTuple, overload\n\n",
        "from lamella import (Generator, Tensor, _bool, _Device, _dtype, _float, _int, _layout,\n",
        "                     _memory_format, _Scalar, _Size, _str)\n\n", own.results(), text);
    files["python/lamella/_" + module + ".pyi"] = file;
  }
}

void emit_module(const Model& model, const EmitOptions& options, Files& files) {
  if (options.python_module.empty()) return;
  std::vector<std::string> order;
  Overloads functions;
  std::map<std::string, std::string> namespaces;
  std::string names;
  std::vector<std::string> all;
  for (const NativeFunction& f : model.functions) {
    if (skipped_in_python(f)) continue;
    const std::string name = python_identifier(f.schema.name.name);
    functions[name].push_back(&f);
    namespaces.emplace(name, f.ns);
  }
  for (const auto& [name, overloads] : functions) {
    put(names, name, " = _lamella.ops.", namespaces[name], ".", overloads[0]->schema.name.name,
        "\n");
    all.push_back(in_quotes(name));
  }
  if (options.methods) {
    std::string methods;
    for (const auto& [name, overloads] : functions) {
      const bool method =
          std::ranges::any_of(overloads, [](const NativeFunction* f) { return f->method_variant; });
      if (method) put(methods, "        ", in_quotes(name), ": _method(", name, "),\n");
    }
    if (!methods.empty()) {
      put(names, "\n\ndef _method(op):\n    def method(self, *args, **kwargs):\n",
          "        return op(self, *args, **kwargs)\n\n    return method\n\n\n",
          "_lamella._C._add_to_tensor(\n    {\n", methods, "    }\n)\n");
    }
  }
  const std::string source = banner(options, "Loads the library and names its operators.", "#");
  files[options.python_module + ".py"] =
      source + fill(kModuleTemplate,
                    {{"LIBRARY", options.library}, {"NAMES", names}, {"ALL", join(all, ", ")}});
  Stubs stubs(model);
  std::string text;
  for (const auto& [name, overloads] : functions) text += stubs.write(name, overloads, false, "");
  std::string file = banner(options, "Types of " + options.python_module + ".", "#");
  put(file, "# mypy: disable-error-code=\"overload-overlap, overload-cannot-match, misc\"\n",
      "from collections.abc import Sequence\nfrom typing import Any, NamedTuple, overload\n\n",
      "from lamella import (Generator, Tensor, _bool, _Device, _dtype, _float, _int, _layout,\n",
      "                     _memory_format, _Scalar, _Size, _str)\n\n", stubs.results(), text);
  files[options.python_module + ".pyi"] = file;
}

}  // namespace

void emit_python(const Model& model, const EmitOptions& options, Files& files) {
  if (options.out_of_tree) {
    emit_module(model, options, files);
    return;
  }
  emit_names(model, options, files);
  emit_stubs(model, options, files);
}

}  // namespace lamella::codegen
