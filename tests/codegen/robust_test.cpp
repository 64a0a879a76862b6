// Declaration files that are no YAML of ours: a list of errors at their places. The fuzzer changes
// files at random (tests/fuzz/parsers/yaml.cpp).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "codegen/model.h"

namespace lamella::codegen {
namespace {

class Robust : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ =
        (std::filesystem::temp_directory_path() /
         ("lamella_robust_" +
          std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) + ".yaml"))
            .string();
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string errors_of(const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    SourceSet sources;
    Diagnostics diagnostics;
    load_model({path_}, {}, sources, diagnostics);
    return diagnostics.str();
  }

  std::string path_;
};

TEST_F(Robust, DeepNesting) {
  EXPECT_NE(errors_of("- " + std::string(200000, '[')), "");
  EXPECT_NE(errors_of("- " + std::string(200000, '{')), "");
  std::string dashes;
  for (int i = 0; i < 3000; ++i) dashes += "- ";
  EXPECT_NE(errors_of(dashes + "x"), "");
  std::string maps = "- func:";
  for (int i = 0; i < 2000; ++i)
    maps += "\n" + std::string(static_cast<std::size_t>(i) + 4, ' ') + "a:";
  EXPECT_NE(errors_of(maps), "");
}

TEST_F(Robust, ManyAliases) {
  // Each level names the one before ten times; copying them would take for ever.
  std::string text = "- &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    text += "- &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) text += "*a" + std::to_string(i - 1) + (k < 9 ? ", " : "]\n");
  }
  EXPECT_NE(errors_of(text), "");
}

TEST_F(Robust, OtherEncodings) {
  EXPECT_EQ(errors_of(std::string("\xFF\xFE-\0 \0", 6)),
            path_ + ":1:1: error: not UTF-8 text: save the file as UTF-8\n");
  EXPECT_EQ(errors_of(std::string("- func: f\0(", 11)),
            path_ + ":1:10: error: not UTF-8 text: save the file as UTF-8\n");
}

TEST_F(Robust, ColumnsAreRightEverywhere) {
  // The same mistake, however the signature is written down.
  const std::pair<std::string, std::string> cases[] = {
      {"- func: f(BAD x) -> ()\n", "1:11"},
      {"-   func:    f(BAD x) -> ()\n", "1:16"},
      {"- func: \"f(BAD x) -> ()\"\n", "1:12"},
      {"- func: 'f(str s=''a'', BAD x) -> ()'\n", "1:25"},
      {"- func: \"f(str s=\\\"\\x41\\\", BAD x) -> ()\"\n", "1:28"},
      {"- func: f(int x,\n      int y, BAD z) -> ()\n", "2:14"},
      {"- func: \"f(int x,\\\n      int y, BAD z) -> ()\"\n", "2:14"},
      {"- func: |\n    f(int x,\n    BAD z) -> ()\n", "3:5"},
      {"- func: >\n    f(int x,\n    BAD z) -> ()\n", "3:5"},
      {"- func: !!str f(BAD x) -> ()\n", "1:17"},
      {"- func: &a f(BAD x) -> ()\n", "1:14"},
      {"- {variants: function, func: 'f(BAD x) -> ()'}\n", "1:33"},
      {"- variants: function\r\n  func: f(BAD x) -> ()\r\n", "2:11"},
      {"\xEF\xBB\xBF- func: f(BAD x) -> ()\n", "1:11"},
      {"- func: f(str s=\"\xC3\xA9\xE4\xB8\xAD\", BAD x) -> ()\n", "1:23"},
  };
  for (const auto& [text, place] : cases) {
    const std::string got = errors_of(text);
    EXPECT_TRUE(got.starts_with(path_ + ":" + place + ": error: unknown type 'BAD'"))
        << text << got;
  }
}

}  // namespace
}  // namespace lamella::codegen
