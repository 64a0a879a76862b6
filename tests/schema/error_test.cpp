// Errors of the parser: exact text, line and column.
#include <gtest/gtest.h>

#include "lamella/schema/parser.h"

namespace lamella {
namespace {

struct Case {
  const char* text;
  int column;
  const char* message;
};

const Case kCases[] = {
    {"", 1, "expected an operator's name, got the end of the text"},
    {"(Tensor x) -> ()", 1, "expected an operator's name, got '('"},
    {"a::b::c() -> ()", 5, "an operator's name has one namespace at most: write 'ns::name'"},
    {"f.() -> ()", 3, "expected an overload name after '.', got '('"},
    {"f.default() -> ()", 3,
     "the overload name 'default' is reserved for the overload without a name"},
    {"f", 2, "expected '(' after the operator's name, got the end of the text"},
    {"f(Tensor x)", 12,
     "expected '->' and the returns after the arguments, got the end of the text"},
    {"f(Tensor x) -> ", 16, "expected a type, got the end of the text"},
    {"f(Tensor x) -> Tensor)", 22, "unexpected ')' after the returns"},
    {"f(tensor x) -> ()", 3, "unknown type 'tensor'; did you mean 'Tensor'?"},
    {"f(Tensr x) -> ()", 3, "unknown type 'Tensr'; did you mean 'Tensor'?"},
    {"f(double x) -> ()", 3, "unknown type 'double'; did you mean 'float'?"},
    {"f(string x) -> ()", 3, "unknown type 'string'; did you mean 'str'?"},
    {"f(int64_t x) -> ()", 3, "unknown type 'int64_t'; did you mean 'int'?"},
    {"f(TensorList x) -> ()", 3, "unknown type 'TensorList'; did you mean 'Tensor[]'?"},
    {"f(Quaternion x) -> ()", 3, "unknown type 'Quaternion'"},
    {"f(Tensor) -> ()", 9, "expected an argument name after 'Tensor', got ')'"},
    {"f(Tensor x Tensor y) -> ()", 12, "expected ',' or ')' after an argument, got 'Tensor'"},
    {"f(Tensor x,) -> ()", 12, "expected a type, got ')'"},
    {"f(*, *, int x) -> ()", 6, "'*' appears twice: it may mark keyword-only once"},
    {"f(Tensor x, *) -> ()", 13, "'*' must be followed by at least one keyword-only argument"},
    {"f(..., int x) -> ()", 6, "expected ')' after '...', which must come last, got ','"},
    {"f(int[x] y) -> ()", 7, "expected a length or ']' in the list type, got 'x'"},
    {"f(int[0] y) -> ()", 7, "the length of a list type must be positive; write '[]' for any"},
    {"f(int[2 y) -> ()", 9, "expected ']' to close the list type, got 'y'"},
    {"f(Tensor?? x) -> ()", 10, "'?' appears twice: a type is optional once"},
    {"f(Tensor(a x) -> ()", 12, "expected ')' to close the alias annotation, got 'x'"},
    {"f(Tensor() x) -> ()", 10, "expected the name of an alias set, got ')'"},
    {"f(Tensor(a -> b!) x) -> ()", 16, "'!' belongs before '->': write '(a! -> b)'"},
    {"f(Tensor(a|a) x) -> ()", 12, "alias set 'a' appears twice"},
    {"f(Tensor(a)(b) x) -> ()", 12, "a type carries one alias annotation"},
    {"f(Dict(str, Tensor(a)) x) -> ()", 19,
     "an alias annotation may not stand inside a Dict, a tuple or a Future"},
    {"f(Dict(str) x) -> ()", 11, "expected ',' between the key and the value of a Dict, got ')'"},
    {"f(int x=) -> ()", 9, "expected a default value after '=', got ')'"},
    {"f(int x=1.5) -> ()", 9, "expected a default of type int, got 1.5"},
    {"f(int x=None) -> ()", 9, "None is a default of optional types only; did you mean 'int?'?"},
    {"f(bool x=true) -> ()", 10, "expected a default of type bool, got true; did you mean True?"},
    {"f(bool x=0) -> ()", 10, "expected a default of type bool, got 0"},
    {"f(str x=mean) -> ()", 9, "expected a default of type str, got mean; did you mean \"mean\"?"},
    {"f(str x=\"mean) -> ()", 9, "the string is not closed"},
    {"f(str x='\\q') -> ()", 10, "unknown escape '\\q' in the string"},
    {"f(int[] x=1) -> ()", 11,
     "expected a default of type int[], got 1; only a list of fixed length, like int[2], takes a "
     "bare "
     "value: write [1]"},
    {"f(int[2] x=[1, 2.5]) -> ()", 16, "expected a default of type int, got 2.5"},
    {"f(bool[3] x=[True, False]) -> ()", 13,
     "expected a default of type bool[3], got [True, False], which has 2 elements"},
    {"f(int[] x=[1 2]) -> ()", 14, "expected ',' or ']' in the list, got '2'"},
    {"f(int x=99999999999999999999) -> ()", 9,
     "the integer 99999999999999999999 does not fit in 64 bits"},
    {"f(float x=1e) -> ()", 11, "the exponent of '1e' has no digits"},
    {"f(float x=1e999) -> ()", 11, "the number 1e999 does not fit in a double"},
    {"f(Tensor x=1) -> ()", 12,
     "expected a default of type Tensor, got 1; write [] for an undefined tensor, or make it "
     "'Tensor? x=None'"},
    {"f(ScalarType x=flaot) -> ()", 16,
     "expected a default of type ScalarType, got flaot; did you mean 'float'?"},
    {"f(MemoryFormat x=contiguous) -> ()", 18,
     "expected a default of type MemoryFormat, got contiguous"},
    {"f(int x=mean) -> ()", 9, "expected a default of type int, got mean; did you mean 'Mean'?"},
    {"f(Storage x=1) -> ()", 13,
     "an argument of type Storage cannot have a default other than None of 'Storage?'"},
    {"f() -> Tensor x=1", 16, "a return cannot have a default value"},
    {"f() -> (Tensor, ", 17, "expected a type, got the end of the text"},
    {"f(Tensor \xC3\xA9) -> ()", 10, "expected an argument name after 'Tensor', got '\xC3\xA9'"},
};

TEST(Errors, SayWhatAndWhere) {
  for (const Case& c : kCases) {
    auto outcome = try_parse_schema(c.text);
    auto* problem = std::get_if<SchemaProblem>(&outcome);
    ASSERT_NE(problem, nullptr) << c.text;
    EXPECT_EQ(problem->message, c.message) << c.text;
    EXPECT_EQ(problem->column, c.column) << c.text;
    EXPECT_EQ(problem->line, 1) << c.text;
  }
}

std::string what_of(const std::string& text) {
  try {
    parse_schema(text);
  } catch (const SchemaError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Errors, ShowACaret) {
  EXPECT_EQ(what_of("foo(tensor x) -> Tensor"),
            "schema error at column 5: unknown type 'tensor'; did you mean 'Tensor'?\n"
            "  foo(tensor x) -> Tensor\n"
            "      ^");
}

TEST(Errors, ShowTheLine) {
  EXPECT_EQ(what_of("foo(\n\tTensor x,\n\tint y=z\n) -> Tensor"),
            "schema error at line 3, column 8: expected a default of type int, got z\n"
            "  \tint y=z\n"
            "  \t      ^");
}

TEST(Errors, CarryTheirPlace) {
  try {
    parse_schema("f(\nbad x) -> ()");
    FAIL();
  } catch (const SchemaError& error) {
    EXPECT_EQ(error.line(), 2);
    EXPECT_EQ(error.column(), 1);
    EXPECT_EQ(error.message(), "unknown type 'bad'");
  }
}

TEST(Errors, DeepNestingIsRefused) {
  std::string text = "f(" + std::string(100000, '(') + "int";
  auto outcome = try_parse_schema(text);
  EXPECT_EQ(std::get<SchemaProblem>(outcome).message, "the type is nested too deeply");
  std::string lists = "f(int" + std::string(200000, '[') + " x) -> ()";
  EXPECT_TRUE(std::holds_alternative<SchemaProblem>(try_parse_schema(lists)));
  std::string list = "f(int[] x=" + std::string(100000, '[') + ") -> ()";
  EXPECT_TRUE(std::holds_alternative<SchemaProblem>(try_parse_schema(list)));
}

// Every prefix, and every text with one byte changed, is read or refused; nothing else happens.
TEST(Errors, BrokenTextsAreRefusedCleanly) {
  const std::string text =
      "ns::f.x(Tensor(a! -> a|b) self, int[2]? s=[1, -2], str m=\"q\\n\", *, Dict(str, t[])[] d, "
      "float e=1e-05, __torch__.torch.classes.n.C? c=None, Tensor(c!)[] out) -> (Tensor(a!) r, "
      "(int, t))";
  ASSERT_TRUE(std::holds_alternative<FunctionSchema>(try_parse_schema(text)));
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_TRUE(std::holds_alternative<SchemaProblem>(try_parse_schema(text.substr(0, i))));
    for (char c : {'(', ')', '[', ']', '!', '\\', '"', '*', '.', ' ', '9', '\0', '\xff'}) {
      std::string changed = text;
      changed[i] = c;
      auto outcome = try_parse_schema(changed);
      if (auto* problem = std::get_if<SchemaProblem>(&outcome)) {
        EXPECT_LE(problem->offset, changed.size());
        EXPECT_FALSE(format_problem(changed, *problem).empty());
      } else {
        const FunctionSchema& schema = std::get<FunctionSchema>(outcome);
        EXPECT_EQ(parse_schema(schema.str()), schema) << changed;
      }
    }
  }
}

}  // namespace
}  // namespace lamella
