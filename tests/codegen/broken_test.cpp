// Each broken/NN_name.yaml gives exactly the errors in NN_name.expected.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/autocast_lists.h"
#include "codegen/derivatives.h"

namespace lamella::codegen {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream out;
  out << stream.rdbuf();
  return out.str();
}

// Those that a number begins.
std::vector<fs::path> broken_files(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(LAMELLA_TEST_DIR) / folder)) {
    const char first = entry.path().filename().string()[0];
    if (entry.path().extension() == ".yaml" && first >= '0' && first <= '9') {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

// `load` reads one file of the folder, which is the current one.
template <class F>
void check_folder(const std::string& folder, std::size_t at_least, F&& load) {
  const auto files = broken_files(folder);
  EXPECT_GE(files.size(), at_least);
  const fs::path before = fs::current_path();
  fs::current_path(fs::path(LAMELLA_TEST_DIR) / folder);
  for (const fs::path& path : files) {
    SourceSet sources;
    Diagnostics diagnostics;
    load(path.filename().string(), sources, diagnostics);
    const std::string got = diagnostics.str();
    EXPECT_NE(got, "") << path.filename();
    EXPECT_EQ(got, read(fs::path(path).replace_extension(".expected"))) << path.filename();
    // Each names the file, a line and a column.
    for (const Diagnostic& item : diagnostics.items()) {
      EXPECT_EQ(item.where.file->path(), path.filename().string());
      EXPECT_GT(item.where.line, 0);
      EXPECT_GT(item.where.column, 0);
    }
  }
  fs::current_path(before);
}

TEST(Broken, EachFileIsAnswered) {
  check_folder("broken", 60,
               [](const std::string& file, SourceSet& sources, Diagnostics& diagnostics) {
                 load_model({file}, {}, sources, diagnostics);
               });
}

TEST(Broken, EachFileOfDerivativesIsAnswered) {
  check_folder("broken_derivatives", 60,
               [](const std::string& file, SourceSet& sources, Diagnostics& diagnostics) {
                 const Model model = load_model({"operators.yaml"}, {}, sources, diagnostics);
                 load_derivatives({file}, {}, model, sources, diagnostics);
               });
}

TEST(Broken, EachFileOfCastListsIsAnswered) {
  check_folder("broken_autocast", 15,
               [](const std::string& file, SourceSet& sources, Diagnostics& diagnostics) {
                 Model model = load_model({"operators.yaml"}, {}, sources, diagnostics);
                 apply_autocast_lists({file}, {}, model, sources, diagnostics);
               });
}

}  // namespace
}  // namespace lamella::codegen
