// A tag file is a list of maps `- tag: NAME` with a `desc`.
#include "codegen/tags.h"

namespace lamella::codegen {

// ops/tags.yaml, embedded by the build.
extern const char* const kBuiltinTags;

namespace {

void read_tags(const SourceFile& file, std::set<std::string>& tags, Diagnostics& diagnostics) {
  for (const YamlPtr& entry : read_entries(file, diagnostics)) {
    if (!entry->is_map()) {
      diagnostics.add(entry->where, "expected '- tag: NAME', got " + entry->describe());
      continue;
    }
    bool named = false;
    for (const auto& [key, value] : entry->entries) {
      if (key->text == "tag" && value->is_scalar()) {
        named = true;
        tags.insert(value->text);
      } else if (key->text != "desc") {
        diagnostics.add(key->where,
                        "a tag has the fields 'tag' and 'desc', got " + key->describe());
      }
    }
    if (!named) diagnostics.add(entry->where, "a tag needs a 'tag' with its name");
  }
}

}  // namespace

std::set<std::string> load_tags(const std::vector<std::string>& paths, SourceSet& sources,
                                Diagnostics& diagnostics) {
  std::set<std::string> tags;
  read_tags(*sources.add("(built-in tags)", kBuiltinTags), tags, diagnostics);
  for (const std::string& path : paths) {
    if (const SourceFile* file = sources.load(path, diagnostics))
      read_tags(*file, tags, diagnostics);
  }
  return tags;
}

}  // namespace lamella::codegen
