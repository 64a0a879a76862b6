// Declarations that lamella-gen refuses, as tables: each case must print exactly the listed errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/autocast_lists.h"
#include "codegen/derivatives.h"
#include "codegen/docs.h"

namespace lamella::codegen {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream out;
  out << stream.rdbuf();
  return out.str();
}

struct Case {
  std::string name;
  std::string yaml;
  std::string expected;
};
// The cases of a table: "==== NAME", the text, and each error as "> LINE:COLUMN: error: TEXT". What
// is printed names the file before, and shows the line with a mark below the column.
std::vector<Case> cases_of(const std::string& table) {
  std::vector<Case> cases;
  std::vector<std::string> text;
  std::istringstream lines(read(fs::path(LAMELLA_TEST_DIR) / (table + ".txt")));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("==== ")) {
      cases.push_back({line.substr(5), "", ""});
      text = {""};
    } else if (line.starts_with("> ")) {
      std::size_t row = 0, column = 0;
      char colon = 0;
      std::istringstream(line.substr(2)) >> row >> colon >> column;
      Case& one = cases.back();
      one.expected += one.name + ".yaml:" + line.substr(2) + "\n  " + text.at(row) + "\n";
      one.expected += std::string(column + 1, ' ') + "^\n";
    } else if (!cases.empty()) {
      cases.back().yaml += line + "\n";
      text.push_back(line);
    }
  }
  return cases;
}

// `load` reads one file of the current folder, beside the table's operators.yaml.
template <class F>
void check_table(const std::string& table, std::size_t at_least, F&& load) {
  const std::vector<Case> cases = cases_of(table);
  EXPECT_GE(cases.size(), at_least);
  const fs::path before = fs::current_path();
  const fs::path folder = fs::path(testing::TempDir()) / ("lamella_" + table);
  fs::create_directories(folder);
  const fs::path operators = fs::path(LAMELLA_TEST_DIR) / (table + "_operators.yaml");
  if (fs::exists(operators)) {
    fs::copy_file(operators, folder / "operators.yaml", fs::copy_options::overwrite_existing);
  }
  fs::current_path(folder);
  for (const Case& one : cases) {
    const std::string file = one.name + ".yaml";
    std::ofstream(file, std::ios::binary) << one.yaml;
    SourceSet sources;
    Diagnostics diagnostics;
    load(file, sources, diagnostics);
    const std::string got = diagnostics.str();
    EXPECT_NE(got, "") << one.name;
    EXPECT_EQ(got, one.expected) << one.name;
    // Each names the file, a line and a column.
    for (const Diagnostic& item : diagnostics.items()) {
      EXPECT_EQ(item.where.file->path(), file);
      EXPECT_GT(item.where.line, 0);
      EXPECT_GT(item.where.column, 0);
    }
  }
  fs::current_path(before);
  fs::remove_all(folder);
}

TEST(Broken, EachDeclarationIsAnswered) {
  check_table("broken", 150,
              [](const std::string& file, SourceSet& sources, Diagnostics& diagnostics) {
                load_model({file}, {}, sources, diagnostics);
              });
}

TEST(Broken, EachDerivativeIsAnswered) {
  check_table("broken_derivatives", 63,
              [](const std::string& file, SourceSet& sources, Diagnostics& diagnostics) {
                const Model model = load_model({"operators.yaml"}, {}, sources, diagnostics);
                load_derivatives({file}, {}, model, sources, diagnostics);
              });
}

TEST(Broken, EachCastListIsAnswered) {
  check_table("broken_autocast", 17,
              [](const std::string& file, SourceSet& sources, Diagnostics& diagnostics) {
                Model model = load_model({"operators.yaml"}, {}, sources, diagnostics);
                apply_autocast_lists({file}, {}, model, sources, diagnostics);
              });
}

TEST(Broken, EachTextIsAnswered) {
  check_table("broken_docs", 9,
              [](const std::string& file, SourceSet& sources, Diagnostics& diagnostics) {
                Model model = load_model({"operators.yaml"}, {}, sources, diagnostics);
                apply_doc_files({file}, {}, model, sources, diagnostics);
              });
}

}  // namespace
}  // namespace lamella::codegen
