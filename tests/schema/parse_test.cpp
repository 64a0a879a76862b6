// The grammar: valid signatures, their meaning, and printing back.
#include <gtest/gtest.h>

#include <cmath>

#include "lamella/schema/parser.h"

namespace lamella {
namespace {

SchemaType type_of(const std::string& text) { return parse_type(text).type; }

// The default of the one argument `TYPE x=TEXT`.
DefaultValue default_of(const std::string& type, const std::string& text) {
  return *parse_schema("f(" + type + " x=" + text + ") -> ()").arguments[0].default_value;
}

template <typename T>
T value_of(const std::string& type, const std::string& text) {
  return std::get<T>(default_of(type, text).value);
}

TEST(Types, PrintAsRead) {
  for (const char* text : {"Tensor",
                           "Tensor?",
                           "Tensor[]",
                           "Tensor?[]",
                           "Tensor[]?",
                           "Tensor[][]",
                           "int",
                           "int[]",
                           "int[2]",
                           "int[1]?",
                           "SymInt",
                           "SymInt[]",
                           "SymInt[3]?",
                           "float",
                           "float[]?",
                           "bool",
                           "bool[4]",
                           "complex",
                           "str",
                           "str[]",
                           "str?",
                           "Scalar",
                           "Scalar[]",
                           "Scalar?[]",
                           "number",
                           "Generator?",
                           "ScalarType?",
                           "Layout",
                           "Device?",
                           "DeviceIndex",
                           "MemoryFormat?",
                           "Storage",
                           "Stream",
                           "QScheme",
                           "Dimname[]?",
                           "Any",
                           "Any[]",
                           "AnyEnumType",
                           "NoneType",
                           "t",
                           "t1",
                           "tVal",
                           "t[]",
                           "Dict(str, Tensor)",
                           "Dict(int, t)[]",
                           "Future(t)",
                           "Await(t)",
                           "RRef(t)",
                           "(int, Tensor)",
                           "(str, tVal)[]",
                           "__torch__.torch.classes.ns.Name",
                           "__torch__.torch.classes.rnn.CellParamsBase[]"}) {
    EXPECT_EQ(type_of(text).str(), text);
  }
}

TEST(Types, AnswerQueries) {
  SchemaType type = type_of("SymInt[2]?");
  EXPECT_TRUE(type.is_optional());
  EXPECT_TRUE(type.is_symbolic());
  EXPECT_TRUE(type.element().is_list());
  EXPECT_EQ(type.element().fixed_size(), 2);
  EXPECT_EQ(type.base().kind(), TypeKind::kInt);
  EXPECT_EQ(type.base().name(), "SymInt");
  EXPECT_EQ(type.without_optional(), type_of("int[2]"));
  EXPECT_EQ(type_of("int[]").fixed_size(), std::nullopt);
  EXPECT_TRUE(type_of("Tensor?[]").holds_tensor());
  EXPECT_FALSE(type_of("Dict(str, Tensor)").holds_tensor());
  EXPECT_EQ(type_of("Dict(str, Tensor)").elements()[0].kind(), TypeKind::kStr);
}

TEST(Types, AreEqualByMeaning) {
  EXPECT_EQ(type_of("SymInt"), type_of("int"));
  EXPECT_EQ(type_of("Dict(SymInt, (DeviceIndex, str))[]"), type_of("Dict(int, (int, str))[]"));
  EXPECT_EQ(type_of("number"), type_of("Scalar"));
  EXPECT_NE(type_of("int[2]"), type_of("int[]"));
  EXPECT_NE(type_of("int[2]"), type_of("int[3]"));
  EXPECT_NE(type_of("Tensor?"), type_of("Tensor"));
  EXPECT_NE(type_of("t"), type_of("t1"));
}

TEST(Types, AreMadeByHand) {
  const SchemaType tensor = SchemaType::atom(TypeKind::kTensor);
  EXPECT_EQ(SchemaType::list_of(SchemaType::optional_of(tensor)), type_of("Tensor?[]"));
  EXPECT_EQ(SchemaType::list_of(SchemaType::sym_int(), 2).str(), "SymInt[2]");
  EXPECT_EQ(SchemaType::dict_of(SchemaType::atom(TypeKind::kStr), tensor).str(),
            "Dict(str, Tensor)");
  EXPECT_EQ(SchemaType().kind(), TypeKind::kAny);
}

TEST(Aliases, AreRead) {
  Argument both = parse_type("Tensor(a! -> a|b)");
  ASSERT_NE(both.alias(), nullptr);
  EXPECT_EQ(both.alias()->before, std::vector<std::string>{"a"});
  EXPECT_EQ(both.alias()->after, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(both.alias()->is_write);
  EXPECT_EQ(parse_type("Tensor(a|b)").alias()->before, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(parse_type("t(*)").alias()->is_wildcard());
  EXPECT_FALSE(parse_type("Tensor(a -> *)").is_write());
  EXPECT_EQ(parse_type("Tensor").alias(), nullptr);
}

TEST(Aliases, StandWhereTheyWereWritten) {
  for (const char* text :
       {"Tensor(a)", "Tensor(a!)", "Tensor(a! -> a|b)", "Tensor(a -> *)", "Tensor(a|b)", "Tensor!",
        "Tensor![]", "Tensor(a!)[]", "Tensor[](a!)", "Tensor(a!)?", "t(*)?", "t[](*)",
        "Tensor(a)[](b!)", "Dict(str, t)(a!)", "Generator(a!)"}) {
    EXPECT_EQ(parse_type(text).type_str(), text);
  }
  EXPECT_EQ(parse_type("Tensor(a!)[]").alias()->depth, 1);
  EXPECT_EQ(parse_type("Tensor[](a!)").alias()->depth, 0);
}

TEST(Aliases, ShorthandNamesAFreshSet) {
  FunctionSchema schema = parse_schema("ns::f(Tensor! x, Tensor! y) -> ()");
  EXPECT_TRUE(schema.arguments[0].is_write());
  EXPECT_NE(schema.arguments[0].alias()->before, schema.arguments[1].alias()->before);
  EXPECT_EQ(schema.str(), "ns::f(Tensor! x, Tensor! y) -> ()");
}

TEST(Defaults, HaveTheTypeOfTheirArgument) {
  EXPECT_EQ(value_of<std::int64_t>("int", "-3"), -3);
  EXPECT_EQ(value_of<double>("float", "1"), 1.0);
  EXPECT_EQ(value_of<double>("float", "1e-05"), 1e-05);
  EXPECT_EQ(value_of<double>("float", "60."), 60.0);
  EXPECT_EQ(value_of<double>("float", "-.5E+2"), -50.0);
  EXPECT_EQ(value_of<double>("float?", "-inf"), -INFINITY);
  EXPECT_TRUE(std::isnan(value_of<double>("float", "nan")));
  EXPECT_EQ(value_of<std::int64_t>("Scalar", "1"), 1);
  EXPECT_EQ(value_of<double>("Scalar", "1.0"), 1.0);
  EXPECT_EQ(value_of<bool>("Scalar", "True"), true);
  EXPECT_EQ(value_of<std::complex<double>>("complex", "1.5-2j"), std::complex<double>(1.5, -2));
  EXPECT_EQ(value_of<std::complex<double>>("Scalar", "2j"), std::complex<double>(0, 2));
  EXPECT_EQ(value_of<bool>("bool", "False"), false);
  EXPECT_TRUE(default_of("Tensor?", "None").is_none());
  EXPECT_TRUE(default_of("Tensor", "[]").is_none());
  EXPECT_TRUE(default_of("Generator?", "None").is_none());
}

TEST(Defaults, StringsAreUnescaped) {
  EXPECT_EQ(value_of<std::string>("str", "'none'"), "none");
  EXPECT_EQ(value_of<std::string>("str", R"("a\"b\n\\'")"), "a\"b\n\\'");
}

TEST(Defaults, ListsAndNumbersForThem) {
  using Ints = std::vector<std::int64_t>;
  EXPECT_EQ(value_of<Ints>("int[]", "[0,1]"), (Ints{0, 1}));
  EXPECT_EQ(value_of<Ints>("int[2]", "2"), (Ints{2, 2}));
  EXPECT_EQ(value_of<Ints>("SymInt[3]?", "1"), (Ints{1, 1, 1}));
  EXPECT_EQ(value_of<Ints>("int[2]", "[]"), Ints{});
  EXPECT_EQ(value_of<Ints>("int[1]", "[-2, -1]"), (Ints{-2, -1}));
  EXPECT_EQ(value_of<std::vector<bool>>("bool[3]", "True"), std::vector<bool>(3, true));
  EXPECT_EQ(value_of<std::vector<double>>("float[]", "[1, 0.5]"), (std::vector<double>{1, 0.5}));
  EXPECT_EQ(value_of<std::vector<std::string>>("str[]", "['a', \"b\"]"),
            (std::vector<std::string>{"a", "b"}));
}

TEST(Defaults, WordsAreNumbers) {
  EXPECT_EQ(value_of<std::int64_t>("int", "Mean"), 1);
  EXPECT_EQ(value_of<std::int64_t>("MemoryFormat", "contiguous_format"), 0);
  EXPECT_EQ(value_of<std::int64_t>("MemoryFormat?", "channels_last_3d"), 3);
  EXPECT_EQ(value_of<std::int64_t>("ScalarType?", "long"), 4);
  EXPECT_EQ(value_of<std::int64_t>("ScalarType", "bfloat16"), 15);
  EXPECT_EQ(value_of<std::int64_t>("ScalarType", "uint64"), 29);
  EXPECT_EQ(value_of<std::int64_t>("Layout", "strided"), 0);
  EXPECT_EQ(value_of<std::string>("Device", "cpu"), "cpu");
  EXPECT_EQ(value_of<std::string>("Device?", "'cuda:1'"), "cuda:1");
}

TEST(Defaults, PrintAsSpelledOrResolved) {
  const std::string text =
      "f(int r=Mean, ScalarType? d=long, int[2] s=1, SymInt[2] p=1, float e=1e-05, float o=1.0, "
      "str m=\"a\", int[] l=[0, 1], Tensor? t=None) -> ()";
  FunctionSchema schema = parse_schema(text);
  EXPECT_EQ(schema.str(), text);
  EXPECT_EQ(
      schema.resolved_str(),
      "f(int r=1, ScalarType? d=4, int[2] s=1, SymInt[2] p=[1, 1], float "
      "e=1.0000000000000001e-05, float o=1., str m=\"a\", int[] l=[0, 1], Tensor? t=None) -> ()");
  EXPECT_EQ(parse_schema(schema.resolved_str()), schema);
}

TEST(Schemas, NamesHaveThreeParts) {
  OperatorName name = parse_operator_name("ns::add_.Scalar_out");
  EXPECT_EQ(name.ns, "ns");
  EXPECT_EQ(name.name, "add_");
  EXPECT_EQ(name.overload_name, "Scalar_out");
  EXPECT_EQ(name.str(), "ns::add_.Scalar_out");
  EXPECT_EQ(name.qualified_name(), "ns::add_");
  EXPECT_TRUE(name.is_inplace());
  EXPECT_EQ(name.base_name(), "add");
  EXPECT_EQ(parse_operator_name("__iand__.Tensor").base_name(), "__and__");
  EXPECT_TRUE(parse_operator_name("__ior__").is_inplace());
  EXPECT_FALSE(parse_operator_name("__and__").is_inplace());
  EXPECT_FALSE(parse_operator_name("__index__").is_inplace());
}

TEST(Schemas, PrintAsRead) {
  for (const char* text :
       {"add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", "ns::f() -> ()",
        "f(Tensor self, ...) -> ...", "f(...) -> Tensor(a)",
        "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "f(Tensor X) -> Tensor Y", "abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
        "items(Dict(str, t) self) -> ((str, t)[])", "popitem(Dict(str, t)(a!) self) -> ((str, t))",
        "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
        "f(*, int self) -> (Tensor, int)"}) {
    FunctionSchema schema = parse_schema(text);
    EXPECT_EQ(schema.str(), text);
    EXPECT_EQ(parse_schema(schema.str()), schema);
  }
}

TEST(Schemas, SpacesAndLinesDoNotMatter) {
  FunctionSchema loose =
      parse_schema("  f (Tensor   self ,int[ 2 ] x = [ 1,2 ]\n , * ,bool b)->Tensor ");
  EXPECT_EQ(loose.str(), "f(Tensor self, int[2] x=[1, 2], *, bool b) -> Tensor");
}

TEST(Schemas, KeywordOnlyAndOut) {
  FunctionSchema schema =
      parse_schema("f.out(Tensor self, *, bool b=True, Tensor(a!) out) -> Tensor(a!)");
  EXPECT_FALSE(schema.arguments[0].kwarg_only);
  EXPECT_TRUE(schema.arguments[1].kwarg_only);
  EXPECT_FALSE(schema.arguments[1].is_out());
  EXPECT_TRUE(schema.arguments[2].is_out());
  EXPECT_EQ(schema.argument_index("out"), 2);
  EXPECT_EQ(schema.find_argument("none"), nullptr);
}

TEST(Schemas, KindsFollowFromTheSignature) {
  auto kind = [](const char* text) { return parse_schema(text).kind(); };
  EXPECT_EQ(kind("f(Tensor self) -> Tensor"), SchemaKind::kFunctional);
  EXPECT_EQ(kind("f_(Tensor(a!) self) -> Tensor(a!)"), SchemaKind::kInplace);
  EXPECT_EQ(kind("__iand__(Tensor(a!) self, Scalar other) -> Tensor(a!)"), SchemaKind::kInplace);
  EXPECT_EQ(kind("f(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"), SchemaKind::kOut);
  EXPECT_EQ(kind("f(Tensor self, Tensor(a!) x) -> Tensor"), SchemaKind::kMutable);
  EXPECT_TRUE(parse_schema("view(Tensor(a) self, int[] size) -> Tensor(a)").is_view());
  EXPECT_FALSE(parse_schema("f_(Tensor(a!) self) -> Tensor(a!)").is_view());
}

TEST(Schemas, NameOrSchema) {
  EXPECT_EQ(std::get<OperatorName>(parse_schema_or_name("ns::f.x")).str(), "ns::f.x");
  EXPECT_EQ(std::get<FunctionSchema>(parse_schema_or_name("ns::f.x() -> ()")).name.str(),
            "ns::f.x");
}

}  // namespace
}  // namespace lamella
