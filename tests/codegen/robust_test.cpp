// Arbitrary bytes as a declaration file: the result is a list of errors, never a crash.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "codegen/derivatives.h"

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

  // Of a file of derivatives, for the operators of kDeclarations.
  std::string derivative_errors_of(const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    SourceSet sources;
    Diagnostics diagnostics;
    load_derivatives({path_}, {}, model_, sources, diagnostics);
    return diagnostics.str();
  }
  void declare(const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    Diagnostics diagnostics;
    model_ = load_model({path_}, {}, declared_, diagnostics);
    EXPECT_EQ(diagnostics.str(), "");
  }
  // Changes `good` at random and hands each version to `read`.
  template <class F>
  static void change(const std::string& good, int rounds, F&& read) {
    std::mt19937 random(7);
    const std::string marks = "-:[]{}&*!|>'\"%@`,#?\t \n\r\\()=~\x01\x80\xff\xc3";
    for (int round = 0; round < rounds; ++round) {
      std::string text = good;
      for (int k = 0; k < 1 + round % 4; ++k) {
        const std::size_t at = random() % text.size();
        switch (random() % 3) {
          case 0:
            text[at] = marks[random() % marks.size()];
            break;
          case 1:
            text.insert(at, 1, marks[random() % marks.size()]);
            break;
          default:
            text.erase(at, 1 + random() % 8);
        }
      }
      read(text);
    }
  }

  std::string path_;
  SourceSet declared_;
  Model model_;
};

constexpr const char* kDeclarations = R"yaml(
- func: mul.Tensor(Tensor self, Tensor other) -> Tensor
  dispatch: {CPU: mul}
- func: sort(Tensor self, int dim=-1, Tensor[] rest=[]) -> (Tensor values, Tensor indices)
  dispatch: {CPU: sort}
)yaml";

constexpr const char* kGoodDerivatives =
    R"yaml(- name: mul.Tensor(Tensor self, Tensor other) -> Tensor
  self, other: f(grad, grad_input_mask, self.sizes(), other.size(-1), "a\"b", {1, 2}) /* why */
  result: other_t * self_p + self_t * other_p
- name: sort(Tensor self, int dim=-1, Tensor[] rest=[]) -> (Tensor values, Tensor indices)
  output_differentiability: [True, False]
  dispatch:
    Default:
      self: "grad.defined() ? zeros_like(self) : put<int, 1>(grad, dim, indices.options())"
      rest: 'not_implemented("sort")'
      values: >-
        pick(self_t,
        rest_t, result1, 1e-5)
    AutogradCUDA:
      self: non_differentiable
)yaml";

constexpr const char* kGood =
    R"yaml(- func: "sum_(Tensor(a!) self, int[2] dim=[0, 1], str m='x') -> Tensor(a!)"
  variants: function, method
  dispatch:
    CPU, CUDA: own::sum
    MPS: >-
      sum_mps
  tags: [core, reduction]
  autogen: 'sum, sum.out'
- func: sinh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  precomputed:
  - self -> int dim
  dispatch: &d {CPU: k}
- func: sinh(Tensor self) -> Tensor
  structured_delegate: sinh.out
)yaml";

TEST_F(Robust, GoodTextIsGood) { EXPECT_EQ(errors_of(kGood), ""); }

TEST_F(Robust, EveryPrefix) {
  const std::string text = kGood;
  for (std::size_t i = 0; i < text.size(); ++i) errors_of(text.substr(0, i));
}

TEST_F(Robust, RandomChanges) {
  change(kGood, 4000, [&](const std::string& text) { errors_of(text); });
}

TEST_F(Robust, GoodDerivativesAreGood) {
  declare(kDeclarations);
  EXPECT_EQ(derivative_errors_of(kGoodDerivatives), "");
}

TEST_F(Robust, EveryPrefixOfDerivatives) {
  declare(kDeclarations);
  const std::string text = kGoodDerivatives;
  for (std::size_t i = 0; i < text.size(); ++i) derivative_errors_of(text.substr(0, i));
}

TEST_F(Robust, RandomChangesOfDerivatives) {
  declare(kDeclarations);
  change(kGoodDerivatives, 1500, [&](const std::string& text) { derivative_errors_of(text); });
}

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
