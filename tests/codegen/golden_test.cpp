// Compares generated files with the expected ones. To accept changes, run with
// LAMELLA_UPDATE_GOLDEN=1 and review the difference in version control.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "codegen/autocast_lists.h"
#include "codegen/emit.h"
#include "codegen/templates.h"

namespace fs = std::filesystem;
using namespace lamella::codegen;

namespace {

const fs::path kGolden = fs::path(LAMELLA_TEST_DIR) / "golden";

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Of the package's stub, only what is not in the hand-written template.
std::string without_template(const std::string& text) {
  std::set<std::string> fixed;
  std::istringstream lines(kStubTemplate);
  for (std::string line; std::getline(lines, line);) fixed.insert(line);
  std::string rest;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) {
    if (!fixed.contains(line)) rest += line + "\n";
  }
  return rest;
}

Files generate(const std::string& stem, EmitOptions options) {
  const std::string yaml = stem + ".yaml";
  SourceSet sources;
  Diagnostics diagnostics;
  Model model = load_model({(kGolden / yaml).string()}, {}, sources, diagnostics);
  if (const fs::path lists = kGolden / (stem + "_autocast.yaml"); fs::exists(lists)) {
    apply_autocast_lists({lists.string()}, {}, model, sources, diagnostics);
  }
  options.derivatives_source = stem + "_derivatives.yaml";
  const DerivativeModel derivatives = load_derivatives(
      {(kGolden / options.derivatives_source).string()}, {}, model, sources, diagnostics);
  EXPECT_EQ(diagnostics.str(), "");
  options.source = yaml;
  Files files = emit_all(model, model, derivatives, options);
  if (auto stub = files.find("python/lamella/__init__.pyi"); stub != files.end()) {
    stub->second = without_template(stub->second);
  }
  return files;
}

// The lines of a text without those that it begins and ends with as `other` does.
std::string apart_from(const std::string& other, const std::string& text) {
  const std::size_t shorter = std::min(other.size(), text.size());
  std::size_t begin = 0, end = 0;
  while (begin < shorter && other[begin] == text[begin]) ++begin;
  begin = begin == 0 ? 0 : text.rfind('\n', begin - 1) + 1;
  while (end < shorter - begin && other[other.size() - 1 - end] == text[text.size() - 1 - end])
    ++end;
  end = std::min(text.find('\n', text.size() - end - 1) + 1, text.size());
  return text.substr(begin, end - begin);
}
// Keeps the first file of each kind, such as lamella/register_*, whole, and the lines in which the
// others differ from it.
Files without_frames(Files files) {
  std::map<std::string, std::string> firsts;
  for (auto& [name, text] : files) {
    const bool op = name.starts_with("lamella/api/ops/");
    const auto [first, is_new] = firsts.emplace(op ? "ops" : name.substr(0, name.find('_')), text);
    if (!is_new) text = apart_from(first->second, text);
  }
  return files;
}

// Golden files have `.golden` behind their names, so that no tool takes them for sources.
void compare(const Files& whole, const fs::path& expected) {
  const Files files = without_frames(whole);
  if (std::getenv("LAMELLA_UPDATE_GOLDEN") != nullptr) {
    fs::remove_all(expected);
    for (const auto& [name, text] : files) {
      fs::path path = expected / (name + ".golden");
      fs::create_directories(path.parent_path());
      std::ofstream(path, std::ios::binary) << text;
    }
    GTEST_SKIP() << "wrote " << expected;
  }
  std::set<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(expected)) {
    if (!entry.is_regular_file()) continue;
    std::string name = fs::relative(entry.path(), expected).string();
    found.insert(name.substr(0, name.size() - std::string(".golden").size()));
  }
  for (const auto& [name, text] : files) {
    EXPECT_TRUE(found.contains(name)) << name << " is generated but not expected";
    EXPECT_EQ(text, read(expected / (name + ".golden"))) << name;
    found.erase(name);
  }
  for (const std::string& name : found) ADD_FAILURE() << name << " is expected but not generated";
}

TEST(Golden, OwnOperators) { compare(generate("mini", {}), kGolden / "expected"); }

TEST(Golden, OperatorsOfAnotherLibrary) {
  EmitOptions options;
  options.out_of_tree = true;
  options.methods = true;
  options.target = "geo";
  options.derivative_headers = {"geo/formulas.h"};
  options.python_module = "geo_ops";
  options.library = "libgeo.so";
  compare(generate("library", options), kGolden / "expected_out_of_tree");
}

TEST(Golden, EveryFileNamesItsOrigin) {
  for (const auto& [name, text] : generate("mini", {})) {
    const bool json = name.ends_with(".json");
    const std::string mark = json ? "{\"\": \"" : name.ends_with(".pyi") ? "# " : "// ";
    const std::string source =
        name.find("derivatives") == std::string::npos ? "mini.yaml" : "mini_derivatives.yaml";
    EXPECT_TRUE(text.starts_with(mark + "Generated by lamella-gen from " + source +
                                 ". Do not edit." + (json ? "\"" : "\n")))
        << name;
  }
}

class WriteFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / ("lamella_golden_" + std::to_string(::getpid()));
    fs::remove_all(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }
  fs::path dir_;
};

TEST_F(WriteFiles, KeepsTimeStampsOfWhatStaysTheSame) {
  write_files(dir_.string(), {{"a/one.h", "1"}, {"two.h", "2"}});
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(5);
  fs::last_write_time(dir_ / "a/one.h", long_ago);
  fs::last_write_time(dir_ / "two.h", long_ago);
  write_files(dir_.string(), {{"a/one.h", "1"}, {"two.h", "3"}});
  EXPECT_EQ(fs::last_write_time(dir_ / "a/one.h"), long_ago);
  EXPECT_GT(fs::last_write_time(dir_ / "two.h"), long_ago);
  EXPECT_EQ(read(dir_ / "two.h"), "3");
}

TEST_F(WriteFiles, RemovesItsOwnFilesThatAreGone) {
  write_files(dir_.string(), {{"a/one.h", "1"}, {"two.h", "2"}});
  std::ofstream(dir_ / "other.h") << "not ours";
  write_files(dir_.string(), {{"two.h", "2"}});
  EXPECT_FALSE(fs::exists(dir_ / "a/one.h"));
  EXPECT_TRUE(fs::exists(dir_ / "other.h"));
}

TEST_F(WriteFiles, NamesTheFileThatItCannotWrite) {
  fs::create_directories(dir_);
  std::ofstream(dir_ / "a") << "a file, not a folder";
  try {
    write_files(dir_.string(), {{"a/one.h", "1"}});
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find((dir_ / "a").string()), std::string::npos)
        << error.what();
  }
}

}  // namespace
