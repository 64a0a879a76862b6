// The rules on names and alias annotations: violations, and cases that are allowed.
#include <gtest/gtest.h>

#include "lamella/schema/alias_check.h"

namespace lamella {
namespace {

struct Case {
  const char* text;
  int column;
  const char* message;
};

const Case kBroken[] = {
    {"f(int x, int x) -> ()", 14, "f: argument 'x' appears twice: names must differ"},
    {"f(int x) -> (Tensor y, Tensor y)", 31, "f: return 'y' appears twice: names must differ"},
    {"add_(Tensor self, Tensor other) -> Tensor", 6,
     "add_: an in-place operator (its name ends in '_') writes its 'self': write 'Tensor(a!) "
     "self'"},
    {"add(Tensor(a!) self, Tensor other) -> Tensor(a!)", 1,
     "add: it writes and returns its 'self', so it is in-place: end its name in '_', 'add_'"},
    {"add_(Tensor(x) self) -> Tensor(x)", 12,
     "add_: an in-place operator (its name ends in '_') writes its 'self': write 'Tensor(x!) "
     "self'"},
    {"_foreach_add_(Tensor[] self) -> ()", 15,
     "_foreach_add_: an in-place operator (its name ends in '_') writes its 'self': write "
     "'Tensor(a!)[] self'"},
    {"__iand__(Tensor self, Scalar other) -> Tensor", 10,
     "__iand__: an in-place operator (its name ends in '_') writes its 'self': write 'Tensor(a!) "
     "self'"},
    {"add_(Tensor(a!) self) -> Tensor", 26,
     "add_: an in-place operator returns its 'self': write 'Tensor(a!)' as the first return, or "
     "'()'"},
    {"abs.out(Tensor self, Tensor(a!) out) -> Tensor(a!)", 22,
     "abs.out: 'out' must be keyword-only: put '*, ' before it"},
    {"abs.out(Tensor self, *, Tensor out) -> Tensor", 25,
     "abs.out: the out argument 'out' is written: write 'Tensor(a!) out'"},
    {"abs.out(Tensor self, *, Tensor(a!)? out=None) -> Tensor(a!)", 41,
     "abs.out: the out argument 'out' has a default; out arguments have none"},
    {"abs.out(Tensor self, *, Tensor(a!) out) -> Tensor", 44,
     "abs.out: an out operator returns its out arguments in order: write 'Tensor(a!)' for 'out'"},
    {"f.out(Tensor x, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(b!), Tensor(a!))", 64,
     "f.out: an out operator returns its out arguments in order: write 'Tensor(a!)' for 'out0'"},
    {"f.out(Tensor x, *, Tensor(a!) out) -> (Tensor(a!), Tensor)", 52,
     "f.out: an out operator returns its out arguments and no other tensor"},
    {"abs_.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", 1,
     "abs_.out: an operator with an out argument is not in-place: its name must not end in '_'"},
    {"view(Tensor self) -> Tensor(a)", 28,
     "view: the return is in alias set 'a', which no argument carries: annotate the argument that "
     "it "
     "shares memory with"},
    {"view(Tensor(a) self) -> Tensor(a!)", 31,
     "view: the return is written in alias set 'a', but 'self' of that set is not: a view does not "
     "write; drop the '!', or write '(a!)' at 'self' too"},
    {"view(Tensor(a!) self) -> Tensor(a)", 32,
     "view: a view does not write, but 'self' of alias set 'a' is written: write '(a!)' at the "
     "return "
     "too, or drop the '!'"},
    {"f(Tensor! x) -> Tensor!", 23,
     "f: a return names the set it shares: write 'Tensor(a!)' here and at the argument"},
    {"f(int a=1, int b) -> ()", 16,
     "f: 'b' has no default but follows 'a', which has one: give it a default or move it before"},
};

TEST(AliasRules, BreachesAreNamed) {
  for (const Case& c : kBroken) {
    auto problems = check_alias_rules(parse_schema(c.text), c.text);
    ASSERT_GE(problems.size(), 1u) << c.text;
    EXPECT_EQ(problems[0].message, c.message) << c.text;
    EXPECT_EQ(problems[0].column, c.column) << c.text;
  }
}

TEST(AliasRules, GoodSchemasPass) {
  for (const char* text :
       {"add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        "add_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "__ior__(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "_foreach_add_(Tensor(a!)[] self, Scalar s) -> ()",
        "abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
        "f.out(Tensor x, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))",
        "f.out(Tensor[] x, *, Tensor(a!)[] out) -> ()",
        "max.dim_max(Tensor self, int dim, *, Tensor(a!) max, Tensor(b!) max_values) -> "
        "(Tensor(a!) "
        "values, Tensor(b!) indices)",
        "view(Tensor(a) self, int[] size) -> Tensor(a)",
        "split(Tensor(a -> *) self, int n) -> Tensor(a)[]",
        "rms_norm(Tensor! out, Tensor input) -> ()", "f(Tensor self, Tensor(a!) running) -> Tensor",
        "to(Tensor(a) self) -> Tensor(a|b)", "f(int[2] a=1, int[2] b) -> ()",
        "set_data(Tensor(a!) self, Tensor data) -> ()", "f(int a=1, *, int b) -> ()"}) {
    EXPECT_TRUE(check_alias_rules(parse_schema(text), text).empty()) << text;
  }
}

TEST(AliasRules, RegisteredOperatorsMayBendTwo) {
  for (const char* text : {"q::add.out(Tensor a, Tensor(a!) out) -> Tensor(a!) out",
                           "f(float? posinf, float? posinf) -> Tensor"}) {
    EXPECT_FALSE(check_alias_rules(parse_schema(text), text).empty()) << text;
    EXPECT_TRUE(check_alias_rules(parse_schema(text), text, SchemaRules::kRegistered).empty())
        << text;
  }
}

TEST(AliasRules, AllBreachesInOrder) {
  const char* text = "f_(Tensor self, int x, int x, *, Tensor out) -> Tensor(z)";
  auto problems = check_alias_rules(parse_schema(text), text);
  ASSERT_EQ(problems.size(), 4u);
  EXPECT_EQ(problems[0].column, 4);
  EXPECT_EQ(problems[1].column, 28);
  EXPECT_EQ(problems[2].column, 34);
  EXPECT_EQ(problems[3].column, 55);
}

TEST(AliasRules, NeedNoText) {
  auto problems = check_alias_rules(parse_schema("add_(Tensor self) -> Tensor"));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].line, 1);
}

}  // namespace
}  // namespace lamella
