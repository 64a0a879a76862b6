// Equality, descriptions of differences, and compatibility with an older signature.
#include <gtest/gtest.h>

#include "lamella/schema/parser.h"

namespace lamella {
namespace {

TEST(Equality, IsStructural) {
  EXPECT_EQ(parse_schema("f(SymInt n=1, float e=1) -> ()"),
            parse_schema("f(int n=1, float e=1.0) -> ()"));
  EXPECT_EQ(parse_schema("f(int r=Mean) -> ()"), parse_schema("f(int r=1) -> ()"));
  EXPECT_EQ(parse_schema("f(int[2] s=1) -> ()"), parse_schema("f(int[2] s=[1, 1]) -> ()"));
  EXPECT_NE(parse_schema("f(int n) -> ()"), parse_schema("f(int m) -> ()"));
  EXPECT_NE(parse_schema("f(int n) -> ()"), parse_schema("f(*, int n) -> ()"));
  EXPECT_NE(parse_schema("f(Tensor x) -> ()"), parse_schema("f(Tensor(a!) x) -> ()"));
  EXPECT_NE(parse_schema("f() -> Tensor"), parse_schema("f() -> Tensor y"));
}

TEST(Difference, IsDescribed) {
  auto difference = [](const char* a, const char* b) {
    return describe_difference(parse_schema(a), parse_schema(b));
  };
  EXPECT_EQ(difference("f(int n) -> ()", "f(int n) -> ()"), "");
  EXPECT_EQ(difference("f() -> ()", "g() -> ()"), "the names are f and g");
  EXPECT_EQ(difference("f(int n) -> ()", "f(float n) -> ()"),
            "argument 0 is 'int n' and 'float n'");
  EXPECT_EQ(difference("f(int n) -> ()", "f(*, int n) -> ()"),
            "argument 0 is 'int n' and 'int n (keyword-only)'");
  EXPECT_EQ(difference("f() -> ()", "f(int n) -> ()"),
            "argument 0 is missing in the first: 'int n'");
  EXPECT_EQ(difference("f() -> Tensor", "f() -> ()"),
            "return 0 is missing in the second: 'Tensor'");
  EXPECT_EQ(difference("f(...) -> ()", "f() -> ()"), "only one takes '...'");
}

struct Case {
  const char* old;
  const char* now;
  const char* why;  // empty: compatible
};

const Case kCases[] = {
    {"f(Tensor x) -> Tensor", "f(Tensor x) -> Tensor", ""},
    {"f(Tensor x) -> Tensor", "f(Tensor x, int n=1) -> Tensor", ""},
    {"f(Tensor x) -> Tensor", "f(Tensor x, *, int n=1) -> Tensor", ""},
    {"f(Tensor x) -> Tensor", "f(Tensor? x) -> Tensor", ""},
    {"f(int n) -> ()", "f(Scalar n) -> ()", ""},
    {"f(int[] n) -> ()", "f(int[2] n) -> ()", ""},
    {"f(*, int a, int b) -> ()", "f(*, int b, int a) -> ()", ""},
    {"f(int n) -> ()", "f(int n=1) -> ()", ""},
    {"f() -> Tensor", "f() -> Tensor y", ""},
    {"f() -> ()", "g() -> ()", "g: the name was f"},
    {"f(Tensor x) -> ()", "f(Tensor x, int n) -> ()", "f: the new argument 'n' has no default"},
    {"f(Tensor x, int n) -> ()", "f(Tensor x) -> ()", "f: argument 'n' is gone"},
    {"f(int n, int m) -> ()", "f(int m, int n) -> ()",
     "f: argument 'n' was at position 0 and is now at position 1"},
    {"f(int n) -> ()", "f(*, int n) -> ()", "f: argument 'n' is now keyword-only"},
    {"f(Tensor? x) -> ()", "f(Tensor x) -> ()", "f: argument 'x' was Tensor? and is now Tensor"},
    {"f(int[2] x) -> ()", "f(int[] x) -> ()", "f: argument 'x' was int[2] and is now int[]"},
    {"f(int n=1) -> ()", "f(int n) -> ()", "f: argument 'n' lost its default"},
    {"f(int n=1) -> ()", "f(int n=2) -> ()", "f: the default of argument 'n' was 1 and is now 2"},
    {"f(Tensor x) -> ()", "f(Tensor(a!) x) -> ()", "f: argument 'x' changed its alias annotation"},
    {"f() -> Tensor", "f() -> (Tensor, Tensor)", "f: it returned 1 value and now returns 2 values"},
    {"f() -> Tensor", "f() -> int", "f: return 0 was Tensor and is now int"},
    {"f() -> Tensor y", "f() -> Tensor", "f: return 0 was named 'y' and is now unnamed"},
    {"f(Tensor(a) x) -> Tensor(a)", "f(Tensor(a) x) -> Tensor",
     "f: return 0 changed its alias annotation"},
    {"f(...) -> ()", "f() -> ()", "f: it no longer takes '...'"},
};

TEST(Compatibility, SaysWhyNot) {
  for (const Case& c : kCases) {
    std::string why;
    const bool compatible =
        parse_schema(c.now).is_backward_compatible_with(parse_schema(c.old), &why);
    EXPECT_EQ(why, c.why) << c.old << " / " << c.now;
    EXPECT_EQ(compatible, std::string(c.why).empty()) << c.old << " / " << c.now;
  }
}

}  // namespace
}  // namespace lamella
