// Each broken/NN_name.yaml gives exactly the errors in NN_name.expected.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/model.h"

namespace lamella::codegen {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream out;
  out << stream.rdbuf();
  return out.str();
}

std::vector<fs::path> broken_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(LAMELLA_TEST_DIR) / "broken")) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

TEST(Broken, EachFileIsAnswered) {
  const auto files = broken_files();
  EXPECT_GE(files.size(), 60u);
  const fs::path before = fs::current_path();
  fs::current_path(fs::path(LAMELLA_TEST_DIR) / "broken");
  for (const fs::path& path : files) {
    SourceSet sources;
    Diagnostics diagnostics;
    load_model({path.filename().string()}, {}, sources, diagnostics);
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

}  // namespace
}  // namespace lamella::codegen
