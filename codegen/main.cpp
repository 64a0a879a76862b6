// lamella-gen: the command line.
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <optional>

#include "codegen/autocast_lists.h"
#include "codegen/derivatives.h"
#include "codegen/docs.h"
#include "codegen/emit.h"
#include "codegen/model.h"

namespace {

using namespace lamella::codegen;

// Writes a dependency file for build systems: the inputs are prerequisites of the stamp.
void write_stamp(const std::string& path) {
  std::ofstream out(path, std::ios::trunc);
  out << "lamella-gen\n";
  if (!out) throw std::runtime_error("cannot write " + path);
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

int run(int argc, char** argv) {
  CLI::App app{
      "Reads declarations of operators (native_functions.yaml), checks them, and writes code.",
      "lamella-gen"};
  std::vector<std::string> files;
  ModelOptions options;
  EmitOptions emit;
  bool check = false;
  bool saved = false;
  std::vector<std::string> derivative_files;
  std::vector<std::string> autocast_files;
  std::vector<std::string> doc_files;
  std::vector<std::string> lent_files;
  std::string out;
  std::string stamp;
  app.add_flag("--check", check, "Only check: print every error, exit with 1 if there is one");
  app.add_option("--derivatives", derivative_files,
                 "How operators are differentiated, as a YAML file")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  app.add_option("--autocast", autocast_files,
                 "Which operators autocast casts by device type, as a YAML file")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  app.add_option("--docs", doc_files,
                 "What operators compute, in words, where their entries do not say it, as YAML")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  app.add_option("--python-names-of", lent_files,
                 "Declarations of a library that is loaded by need: Python has their names too")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  app.add_flag("--saved", saved, "Only print what each formula of a derivative keeps");
  app.add_option("--tags", options.tag_files, "More tags, as a YAML file")->type_name("FILE");
  app.add_option("--namespace", options.default_namespace, "Namespace of operators that name none")
      ->capture_default_str();
  app.add_option("--out", out, "Write the generated files here")->type_name("DIR");
  app.add_option("--source-name", emit.source, "What generated files call their input");
  app.add_option("--stamp", stamp, "Touch this file when done")->type_name("FILE");
  app.add_option("--target", emit.target,
                 "Write for a separately built library of this name (a folder of the output)");
  app.add_flag("--methods", emit.methods, "With --target: a class Tensor with the methods");
  app.add_option("--derivatives-header", emit.derivative_headers,
                 "With --target: include this header for the formulas")
      ->type_name("HEADER")
      ->expected(1)
      ->take_all();
  app.add_option("--python-module", emit.python_module, "With --target: write this Python module");
  app.add_option("--library", emit.library, "With --python-module: the library that it loads")
      ->type_name("FILE");
  app.add_option("files", files, "Declarations, as YAML")->required()->type_name("FILE...");
  CLI11_PARSE(app, argc, argv);

  SourceSet sources;
  Diagnostics diagnostics;
  Model model = load_model(files, options, sources, diagnostics);
  apply_autocast_lists(autocast_files, options, model, sources, diagnostics);
  for (const NativeFunction& f : model.functions) {
    if (emit.target.empty() || !f.pointwise) continue;
    diagnostics.add(f.where, f.schema.name.str() +
                                 ": 'pointwise' runs a loop of Lamella itself; in another library "
                                 "write a structured kernel");
  }
  const DerivativeModel derivatives =
      load_derivatives(derivative_files, options, model, sources, diagnostics);
  std::vector<std::string> named_files = files;
  named_files.insert(named_files.end(), lent_files.begin(), lent_files.end());
  std::optional<Model> named;
  if (!lent_files.empty()) named = load_model(named_files, options, sources, diagnostics);
  apply_doc_files(doc_files, options, named ? *named : model, sources, diagnostics);
  std::cerr << diagnostics.str();
  if (!diagnostics.empty()) return 1;
  if (saved) {
    std::cout << list_saved(derivatives);
    return 0;
  }
  if (check || out.empty()) return 0;

  emit.out_of_tree = !emit.target.empty();
  if (emit.source.empty()) emit.source = files.front();
  if (!derivative_files.empty()) emit.derivatives_source = file_name(derivative_files.front());
  write_files(out, emit_all(model, named ? *named : model, derivatives, emit));
  if (!stamp.empty()) write_stamp(stamp);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "lamella-gen: " << error.what() << "\n";
    return 2;
  }
}
