// Runs the emitters and writes the files that changed.
#include "codegen/emit.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

#include "codegen/docs.h"
#include "codegen/templates.h"

namespace lamella::codegen {

std::string fill(std::string_view text,
                 std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
  std::string out;
  while (true) {
    const size_t at = text.find("@@");
    if (at == std::string_view::npos) break;
    const size_t end = text.find("@@", at + 2);
    if (end == std::string_view::npos) throw std::logic_error("template: '@@' without its end");
    const std::string_view name = text.substr(at + 2, end - at - 2);
    out += text.substr(0, at);
    bool known = false;
    for (const auto& [key, value] : values) {
      if (key != name) continue;
      out += value;
      known = true;
    }
    if (!known) throw std::logic_error("template: no text for '" + std::string(name) + "'");
    text.remove_prefix(end + 2);
  }
  out += text;
  return out;
}

Files emit_all(const Model& model, const Model& named, const DerivativeModel& derivatives,
               const EmitOptions& options) {
  Files files;
  emit_api(model, options, files);
  emit_native(model, options, files);
  emit_registrations(model, options, files);
  emit_derivatives(derivatives, options, files);
  emit_python(named, options, files);
  if (!options.out_of_tree) emit_docs(named, options, files);
  return files;
}

namespace fs = std::filesystem;

namespace {

constexpr const char* kListName = ".lamella-gen.files";

bool has_contents(const fs::path& path, const std::string& contents) {
  std::error_code error;
  if (fs::file_size(path, error) != contents.size() || error) return false;
  std::ifstream in(path, std::ios::binary);
  std::string text(contents.size(), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  return in.good() && text == contents;
}

void write(const fs::path& path, const std::string& contents) {
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace

void write_files(const std::string& directory, const Files& files) {
  const fs::path root(directory);
  // The list of the former run says which files lamella-gen may remove.
  std::ifstream former(root / kListName);
  for (std::string name; std::getline(former, name);) {
    if (!files.contains(name)) fs::remove(root / name);
  }
  former.close();
  std::string list;
  for (const auto& [name, contents] : files) {
    list += name + "\n";
    if (!has_contents(root / name, contents)) write(root / name, contents);
  }
  if (!has_contents(root / kListName, list)) write(root / kListName, list);
}

}  // namespace lamella::codegen
