// Emits the declarations of kernels: plain functions, and structs of structured kernels.
#include <algorithm>
#include <set>

#include "codegen/cpp.h"

namespace lamella::codegen {
namespace {

// Declarations by namespace, in order of first appearance.
class ByNamespace {
 public:
  std::string& operator[](const std::string& ns) {
    for (auto& [name, text] : parts_) {
      if (name == ns) return text;
    }
    return parts_.emplace_back(ns, "").second;
  }
  std::string str() const {
    std::string out;
    for (const auto& [name, text] : parts_) {
      put(out, "namespace ", name, " {\n", text, "}  // namespace ", name, "\n\n");
    }
    return out;
  }

 private:
  std::vector<std::pair<std::string, std::string>> parts_;
};

// TensorIterator -> tensor_iterator
std::string snake(const std::string& name) {
  std::string out;
  for (char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !out.empty()) out += '_';
    out += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

std::string base_class(const NativeFunction& root) {
  if (root.structured_inherits.empty()) return "MetaBase";
  // at::TensorIteratorBase and the like stand for the same class here.
  std::string name = root.structured_inherits;
  if (const size_t colon = name.rfind("::"); colon != std::string::npos) name.erase(0, colon + 2);
  if (name == "TensorIteratorBase") name = "TensorIterator";
  return name;
}

// The struct that passes values that meta() computed to impl(). Template flags record which members
// are set, so that forgetting one does not compile.
std::string precompute_struct(const NativeFunction& root) {
  std::vector<PrecomputedArgument> members;
  for (const Precomputed& one : root.precomputed) {
    members.insert(members.end(), one.with.begin(), one.with.end());
  }
  std::vector<std::string> flags, all_true, all_false;
  for (const PrecomputedArgument& member : members) {
    std::string flag = "bool has_" + member.name;
    flag += " = false";
    flags.push_back(flag);
    all_true.push_back("true");
  }
  std::string out;
  put(out, "  template <", join(flags, ", "), ">\n  struct precompute_out {\n");
  for (size_t i = 0; i < members.size(); ++i) {
    std::vector<std::string> after;
    for (size_t k = 0; k < members.size(); ++k) {
      after.push_back(k == i ? "true" : "has_" + members[k].name);
    }
    const std::string type = "precompute_out<" + join(after, ", ") + ">";
    put(out, "    ", type, " set_", members[i].name, "(", members[i].type, " value) const {\n",
        "      static_assert(!has_", members[i].name, ", \"", members[i].name,
        " is already set\");\n      ", type, " next;\n");
    for (size_t k = 0; k < members.size(); ++k) {
      put(out, "      next.", members[k].name, " = ", k == i ? "value" : members[k].name, ";\n");
    }
    put(out, "      return next;\n    }\n");
  }
  for (const PrecomputedArgument& member : members) {
    put(out, "    ", member.type, " ", member.name, "{};\n");
  }
  put(out, "  };\n  using meta_return_ty = precompute_out<", join(all_true, ", "), ">;\n");
  return out;
}

// Parameters of impl(): replaced arguments are exchanged for their replacements, added ones follow,
// and outputs come last.
std::string impl_parameters(const NativeFunction& root) {
  std::vector<std::string> list;
  for (const Parameter& p : functional_parameters(root)) {
    const auto replaced = std::ranges::find_if(
        root.precomputed, [&](const Precomputed& one) { return one.replaced == p.argument->name; });
    if (replaced == root.precomputed.end()) {
      list.push_back(p.declared(false));
      continue;
    }
    for (const PrecomputedArgument& member : replaced->with) {
      list.push_back(member.type + " " + member.name);
    }
  }
  for (const Precomputed& one : root.precomputed) {
    if (!one.replaced.empty()) continue;
    for (const PrecomputedArgument& member : one.with)
      list.push_back(member.type + " " + member.name);
  }
  for (const std::string& name : output_names(root)) {
    list.push_back("const Tensor& " + identifier(name));
  }
  return join(list, ", ");
}

}  // namespace

void emit_native(const Model& model, const EmitOptions& options, Files& files) {
  ByNamespace kernels, metas, impls;
  std::set<std::string> seen, bases;
  bool structured = false;

  for (const NativeFunction& function : model.functions) {
    if (!function.structured) {
      if (function.autogen_of != nullptr || !function.alias_of.empty()) continue;
      for (const auto& [key, kernel] : function.dispatch) {
        std::string line;
        put(line, return_type(function), " ", identifier(kernel.name), "(",
            declare(parameters(function), function.kind() != SchemaKind::kOut), ");\n");
        // Default arguments are not part of the key, so that a shared kernel is declared once.
        const std::string ns = kernel_namespace(kernel, function, options);
        std::string signature;
        put(signature, ns, " ", kernel.name, "(", function_type(function));
        if (seen.insert(signature).second) put(kernels[ns], line);
      }
      continue;
    }
    structured = true;
    const std::string name = structured_name(function, model);
    const std::string base = base_class(function);
    bases.insert(base);
    const std::string ns = options.out_of_tree ? function.ns + "::meta" : "lamella::meta";
    std::string& meta = metas[ns];
    put(meta, "struct structured_", name, " : public ::lamella::", base, " {\n");
    if (function.precomputed.empty()) {
      put(meta, "  using meta_return_ty = void;\n");
    } else {
      put(meta, precompute_struct(function));
    }
    put(meta, "  meta_return_ty meta(", declare(functional_parameters(function), false),
        ");\n};\n");
    // Other kernels of a structured operator, as for sparse tensors, are plain functions.
    for (const auto& [key, kernel] : function.dispatch) {
      if (is_structured_key(key)) continue;
      const std::string kernel_ns = kernel_namespace(kernel, function, options);
      std::string line;
      put(line, return_type(function), " ", identifier(kernel.name), "(",
          declare(parameters(function), function.kind() != SchemaKind::kOut), ");\n");
      if (seen.insert(kernel_ns + line).second) put(kernels[kernel_ns], line);
    }
    for (const auto& [key, kernel] : structured_kernels(function)) {
      const std::string kernel_ns = kernel_namespace(kernel, function, options);
      if (!seen.insert("structured " + kernel_ns + "::" + kernel.name).second) continue;
      put(impls[kernel_ns], "struct structured_", kernel.name, " : public ::", ns, "::structured_",
          name, " {\n  void impl(", impl_parameters(function), ");\n};\n");
    }
  }

  std::string text = banner(options, "The kernels that dispatch tables name.");
  put(text, "#pragma once\n\n#include \"lamella/api/tensor.h\"\n\n",
      qualified(kernels.str(), options));
  const std::string prefix = options.out_of_tree ? options.target + "/" : std::string("lamella/");
  files[prefix + "native_functions.h"] = text;

  std::string structs = banner(
      options,
      "Structured kernels: meta:: has a struct for each operator, whose meta() states the outputs; "
      "native:: one for each backend, whose impl() computes them.");
  put(structs, "#pragma once\n\n");
  for (const std::string& base : bases) {
    if (base == "MetaBase") continue;
    put(structs, "#include \"lamella/kernels/", snake(base), ".h\"\n");
  }
  put(structs, "#include \"lamella/", options.out_of_tree ? "structured.h" : "api/meta_base.h",
      "\"\n\n");
  if (structured) put(structs, qualified(metas.str() + impls.str(), options));
  files[prefix + "structured_kernels.h"] = structs;
}

}  // namespace lamella::codegen
