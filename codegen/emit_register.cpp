// Emits registrations: the schemas, and for each dispatch key a table of kernels.
#include <map>

#include "codegen/cpp.h"
#include "codegen/kernel_tables.h"
#include "codegen/pointwise.h"

namespace lamella::codegen {
namespace {

std::string file_name(const EmitOptions& options) {
  const size_t slash = options.source.rfind('/');
  return slash == std::string::npos ? options.source : options.source.substr(slash + 1);
}

// Schemas by namespace.
std::map<std::string, std::string> schema_rows(const Model& model) {
  std::map<std::string, std::string> rows;
  for (const NativeFunction& f : model.functions) {
    FunctionSchema bare = f.schema;
    bare.name.ns.clear();
    const std::string tags = f.registered_tags();
    put(rows[f.ns], "    {", in_quotes(bare.str()), ",\n     ",
        tags.empty() ? "nullptr" : in_quotes(tags), ", ", std::to_string(f.where.line), "},\n");
  }
  return rows;
}

void emit_in_tree(const Model& model, const EmitOptions& options,
                  const std::map<std::string, KernelTable>& tables, Files& files) {
  const std::string source = file_name(options);
  std::string schemas = banner(options, "The schema of every operator, and all registrations.");
  put(schemas, "#include \"lamella/api/operator_tables.h\"\n\nnamespace lamella {\n");
  std::string body;
  for (const auto& [ns, rows] : schema_rows(model)) {
    put(schemas, "\nstatic const SchemaRow schemas_", ns, "[] = {\n", rows, "};\n");
    put(body, "  register_schemas(", in_quotes(ns), ", ", in_quotes(source), ", schemas_", ns,
        ");\n");
  }
  std::string declarations;
  for (const std::string& file : kernel_table_names()) {
    std::string text = banner(options, "Kernels by dispatch key.");
    put(text, "#include \"lamella/api/functions.h\"\n#include \"lamella/api/operator_tables.h\"\n",
        "#include \"lamella/kernels/device_guard.h\"\n",
        "#include \"lamella/kernels/write_counts.h\"\n",
        "#include \"lamella/api/generated_kernels.h\"\n",
        "#include \"lamella/native_functions.h\"\n#include \"lamella/structured_kernels.h\"\n\n",
        "namespace lamella {\n");
    std::string calls;
    if (const auto found = tables.find(file); found != tables.end()) {
      put(text, "namespace {\n\n", found->second.functions, "\n");
      for (const auto& [key, rows] : found->second.rows) {
        // Local: registration may run before a global table is initialised.
        put(calls, "  static const KernelRow kernels_", key, "[] = {\n", rows, "  };\n");
        put(calls, "  register_kernels(DispatchKey::", key, ", ", in_quotes(source), ", kernels_",
            key, ");\n");
      }
      put(text, "}  // namespace\n");
    }
    put(text, "\nvoid ", file, "() {\n", calls, "}\n\n}  // namespace lamella\n");
    files["lamella/" + file + ".cpp"] = text;
    if (file == "register_CUDA") continue;  // the CUDA library calls its own
    put(body, "  ", file, "();\n");
    put(declarations, "void ", file, "();\n");
  }
  put(schemas, "\n", declarations, "\nvoid register_generated() {\n", body,
      "}\n\n}  // namespace lamella\n");
  files["lamella/register_schemas.cpp"] = schemas;
  std::string pointwise = banner(options, "The structured kernels of pointwise operators.");
  put(pointwise, "#include \"lamella/structured_kernels.h\"\n\n",
      pointwise_definitions(model, options));
  files["lamella/pointwise_kernels.cpp"] = pointwise;
}

void emit_out_of_tree(const Model& model, const EmitOptions& options,
                      const std::map<std::string, KernelTable>& tables, Files& files) {
  const std::string& target = options.target;
  std::string text = banner(options, "Schemas and kernels of this library's operators.");
  put(text, "#include \"lamella/lamella.h\"\n#include \"lamella/structured.h\"\n#include \"",
      target, "/functions.h\"\n#include \"", target, "/native_functions.h\"\n#include \"", target,
      "/structured_kernels.h\"\n\nnamespace {\n\nusing namespace ::lamella;\n\n");
  std::map<std::string, std::string> rows;
  for (const auto& [file, table] : tables) {
    put(text, table.functions);
    for (const auto& [place, lines] : table.rows) rows[place] += lines;
  }
  put(text, "\n}  // namespace\n");
  std::map<std::string, std::string> definitions;
  for (const NativeFunction& f : model.functions) {
    FunctionSchema bare = f.schema;
    bare.name.ns.clear();
    const std::string tags = f.registered_tags();
    if (f.doc.empty()) {
      put(definitions[f.ns], "  m.def(", in_quotes(bare.str()),
          tags.empty() ? "" : ", " + in_quotes(tags), ");\n");
    } else {
      put(definitions[f.ns], "  m.def(", in_quotes(bare.str()),
          ",\n        ::lamella::Policies{.tags = ", in_quotes(tags),
          ",\n                            .doc = ", in_quotes(f.doc), "});\n");
    }
  }
  for (const auto& [ns, lines] : definitions) {
    put(text, "\nLAMELLA_LIBRARY_FRAGMENT(", ns, ", m) {\n", lines, "}\n");
  }
  for (const auto& [place, lines] : rows) {
    const size_t space = place.find(' ');
    put(text, "\nLAMELLA_LIBRARY_IMPL(", place.substr(0, space), ", ", place.substr(space + 1),
        ", m) {\n", lines, "}\n");
  }
  // Programs reference this symbol when they link, so that the linker keeps the library.
  put(text, "\nextern \"C\" __attribute__((visibility(\"default\"))) void lamella_operators_",
      c_identifier(target), "() {}\n");
  files[target + "/register.cpp"] = text;
}

}  // namespace

void emit_registrations(const Model& model, const EmitOptions& options, Files& files) {
  const std::map<std::string, KernelTable> tables = make_kernel_tables(model, options);
  if (options.out_of_tree) {
    emit_out_of_tree(model, options, tables, files);
  } else {
    emit_in_tree(model, options, tables, files);
  }
}

}  // namespace lamella::codegen
