// lamella-gen: the command line.
#include <CLI/CLI.hpp>
#include <iostream>

#include "codegen/model.h"

int main(int argc, char** argv) {
  using namespace lamella::codegen;
  CLI::App app{
      "Reads declarations of operators (native_functions.yaml), checks them, and writes code.",
      "lamella-gen"};
  std::vector<std::string> files;
  ModelOptions options;
  bool check = false;
  app.add_flag("--check", check, "Only check: print every error, exit with 1 if there is one");
  app.add_option("--tags", options.tag_files, "More tags, as a YAML file")->type_name("FILE");
  app.add_option("--namespace", options.default_namespace, "Namespace of operators that name none")
      ->capture_default_str();
  app.add_option("files", files, "Declarations, as YAML")->required()->type_name("FILE...");
  CLI11_PARSE(app, argc, argv);

  SourceSet sources;
  Diagnostics diagnostics;
  const Model model = load_model(files, options, sources, diagnostics);
  std::cerr << diagnostics.str();
  return diagnostics.empty() ? 0 : 1;
}
