// A file of texts is a list of maps: `name`, an operator without its overload, and `doc`.
#include "codegen/docs.h"

#include "codegen/cpp.h"
#include "lamella/schema/suggest.h"

namespace lamella::codegen {
namespace {

std::string base_name(const NativeFunction& f) { return f.ns + "::" + f.schema.name.base_name(); }
std::string own_name(const NativeFunction& f) { return f.ns + "::" + f.schema.name.name; }

class Texts {
 public:
  Texts(const ModelOptions& options, Model& model, Diagnostics& diagnostics)
      : options_(options), diagnostics_(diagnostics) {
    for (NativeFunction& f : model.functions) by_name_[own_name(f)].push_back(&f);
  }

  void entry(const YamlPtr& node) {
    if (!node->is_map()) {
      report(node->where,
             "expected an entry '- name: OPERATOR' with its 'doc', got " + node->describe());
      return;
    }
    const YamlNode* name = nullptr;
    const YamlNode* doc = nullptr;
    for (const auto& [key, value] : node->entries) {
      const YamlNode** field = key->text == "name" ? &name : key->text == "doc" ? &doc : nullptr;
      if (!key->is_scalar() || field == nullptr) {
        report(key->where, "unknown field " + key->describe() + ": expected 'name' and 'doc'");
      } else if (*field != nullptr) {
        report(key->where, "field '" + key->text + "' appears twice in one entry");
      } else {
        *field = value.get();
      }
    }
    if (name == nullptr || doc == nullptr || !name->is_scalar()) {
      report(node->where, "expected the name of an operator in 'name' and a text in 'doc'");
      return;
    }
    give(*name, read_doc(*doc, diagnostics_));
  }

 private:
  void report(Location where, std::string message) { diagnostics_.add(where, std::move(message)); }

  void give(const YamlNode& name, std::string text) {
    const bool qualified = name.text.find("::") != std::string::npos;
    const auto found =
        by_name_.find(qualified ? name.text : options_.default_namespace + "::" + name.text);
    if (found == by_name_.end()) {
      std::vector<std::string_view> known;
      for (const auto& [full, unused] : by_name_) {
        known.push_back(std::string_view(full).substr(full.find("::") + 2));
      }
      report(name.where, "unknown operator '" + name.text + "'" + did_you_mean(name.text, known));
      return;
    }
    for (const NativeFunction* f : found->second) {
      if (f->doc.empty()) continue;
      report(name.where, "'" + name.text + "' has a 'doc' already, on line " +
                             std::to_string(f->doc_where.line) + " of " +
                             f->doc_where.file->path());
      return;
    }
    found->second.front()->doc = std::move(text);
    found->second.front()->doc_where = name.where;
  }

  const ModelOptions& options_;
  Diagnostics& diagnostics_;
  std::map<std::string, std::vector<NativeFunction*>> by_name_;
};

}  // namespace

std::string read_doc(const YamlNode& value, Diagnostics& diagnostics) {
  std::string text = value.is_scalar() ? value.text : "";
  text.erase(text.find_last_not_of(" \n") + 1);
  if (text.empty()) {
    diagnostics.add(value.where, "'doc' expects a text that says what the operator computes, got " +
                                     (value.is_scalar() ? "nothing" : value.describe()));
  }
  return text;
}

void apply_doc_files(const std::vector<std::string>& paths, const ModelOptions& options,
                     Model& model, SourceSet& sources, Diagnostics& diagnostics) {
  if (paths.empty()) return;
  Texts texts(options, model, diagnostics);
  for (const std::string& path : paths) {
    const SourceFile* file = sources.load(path, diagnostics);
    if (file == nullptr) continue;
    for (const YamlPtr& node : read_entries(*file, diagnostics)) texts.entry(node);
  }
  diagnostics.sort();
}

std::map<std::string, std::string> docs_by_name(const Model& model) {
  std::map<std::string, std::string> docs;
  for (const NativeFunction& f : model.functions) {
    if (!f.doc.empty()) docs.emplace(own_name(f), f.doc);
  }
  for (const NativeFunction& f : model.functions) {
    const auto base = docs.find(base_name(f));
    if (base != docs.end()) docs.emplace(own_name(f), base->second);
  }
  return docs;
}

void emit_docs(const Model& model, Files& files) {
  std::map<std::string, std::string> rows;
  for (const NativeFunction& f : model.functions) {
    if (!f.doc.empty()) rows.emplace(own_name(f), in_quotes(f.doc));
  }
  std::vector<std::string> lines;
  for (const auto& [name, text] : rows) lines.push_back(in_quotes(name) + ": " + text);
  files["python/lamella/_operator_docs.json"] = "{" + join(lines, ",\n") + "}\n";
}

std::string docstring(const std::string& text, const std::string& indent) {
  std::string out = indent + "\"\"\"";
  for (char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
    if (c == '\n') out += indent;
  }
  // Empty lines have no indentation.
  for (size_t at = 0; (at = out.find("\n" + indent + "\n", at)) != std::string::npos; ++at) {
    out.erase(at + 1, indent.size());
  }
  return out + "\"\"\"\n";
}

}  // namespace lamella::codegen
