// Documentation of operators: reads the files of ops/docs/ and writes the texts for Python.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/emit.h"

namespace lamella::codegen {

// Reads files of entries `- name: add` with `doc: TEXT`, and gives each text to the operators of
// that name, as if the entry of the first of them had it. Every error goes to `diagnostics`.
void apply_doc_files(const std::vector<std::string>& paths, const ModelOptions& options,
                     Model& model, SourceSet& sources, Diagnostics& diagnostics);

// The text of a field `doc`, without trailing line ends. Reports values that are not text.
std::string read_doc(const YamlNode& value, Diagnostics& diagnostics);

// By the name with its namespace; overloads and in-place forms have the text of their base's name.
std::map<std::string, std::string> docs_by_name(const Model& model);

// python/lamella/_operator_docs.json.
void emit_docs(const Model& model, const EmitOptions& options, Files& files);

// A docstring with its line end, as a Python literal whose lines are indented by `indent`.
std::string docstring(const std::string& text, const std::string& indent);

}  // namespace lamella::codegen
