// Operators called from modules: arguments, shapes, aliases, effects, errors.
#include "lamella/graph/custom_call/operator_call.h"

#include <gtest/gtest.h>

#include <random>

#include "lamella/graph/builder/functions.h"
#include "lamella/graph/client/module_operator.h"
#include "lamella/graph/client/operator_op.h"
#include "lamella/graph/custom_call/operator_arguments.h"
#include "lamella/graph/execute/executor.h"
#include "lamella/lamella.h"
#include "lamella/schema/parser.h"

namespace lamella::hlo {
namespace {

LAMELLA_LIBRARY(graphtest, m) {
  m.def("halves(Tensor self, int count) -> Tensor[]", [](const Tensor& self, int64_t count) {
    std::vector<Tensor> parts;
    for (int64_t i = 0; i < count; ++i) parts.push_back(self.mul(1.0 / static_cast<double>(i + 1)));
    return parts;
  });
  m.def("bump(Tensor(a!) x, Tensor y) -> Tensor");
  m.def("note(Tensor x) -> ()");
  m.def("shapeless(Tensor x) -> Tensor");
  m.def("liar(Tensor x) -> Tensor");
  m.def("count(Tensor x) -> int");
  m.def("fails(Tensor x) -> Tensor");
}
int notes = 0;
LAMELLA_LIBRARY_IMPL(graphtest, CPU, m) {
  m.impl("bump", [](Tensor& x, const Tensor& y) {
    x.add_(1.0);
    return y.mul(2.0);
  });
  m.impl("note", [](const Tensor&) { ++notes; });
  m.impl("shapeless", [](const Tensor& x) { return x.neg(); });
  m.impl("liar", [](const Tensor& x) { return x.reshape({-1}); });
  m.impl("count", [](const Tensor& x) { return x.numel(); });
  m.impl("fails", [](const Tensor& x) -> Tensor {
    LAMELLA_CHECK_INDEX(false, "fails: expected better luck");
    return x;
  });
}
LAMELLA_LIBRARY_IMPL(graphtest, Meta, m) {
  m.impl("bump", [](Tensor&, const Tensor& y) { return y.mul(2.0); });
  m.impl("note", [](const Tensor&) {});
  m.impl("liar", [](const Tensor& x) { return x.neg(); });
  m.impl("fails", [](const Tensor& x) { return x.neg(); });
}

std::unique_ptr<Executable> compiled(const std::string& text) {
  return make_evaluator(std::shared_ptr<const Module>(parse_module(text)));
}
// A module of one computation: parameters of the shapes, p0 and on, then the lines.
std::string module_text(const std::vector<std::string>& parameters, const std::string& lines) {
  std::string text = "HloModule m\n\nENTRY e {\n";
  for (size_t i = 0; i < parameters.size(); ++i) {
    text += str("  p", i, " = ", parameters[i], " parameter(", i, ")\n");
  }
  return text + "  " + lines + "\n}\n";
}
Value floats(const Executable& program, size_t parameter, const std::vector<float>& numbers) {
  Value made = Value::uninitialized(program.module().entry->parameters[parameter]->shape);
  std::copy(numbers.begin(), numbers.end(), made.values<float>().begin());
  return made;
}
std::vector<float> numbers_of(const Value& value) {
  std::span<float> all = value.values<float>();
  return {all.begin(), all.end()};
}
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}
std::string compile_error(const std::vector<std::string>& parameters, const std::string& lines) {
  return error_of([&] { compiled(module_text(parameters, lines)); });
}

TEST(OperatorCall, TakesOperandsAndArguments) {
  auto program = compiled(module_text(
      {"f32[2]{0}", "f32[2]{0}"},
      "ROOT r = f32[2]{0} custom-call(p0, p1), custom_call_target=\"aten::add.Tensor\", "
      "backend_config=\"(%0, %1, alpha=3)\""));
  std::vector<Value> arguments{floats(*program, 0, {1, 2}), floats(*program, 1, {10, 20})};
  Value result = program->run(arguments);
  EXPECT_EQ(numbers_of(result), (std::vector<float>{31, 62}));
  EXPECT_EQ(result.shape_pointer(), program->module().entry->root->shape);
  EXPECT_EQ(numbers_of(arguments[0]), (std::vector<float>{1, 2}));
}

TEST(OperatorCall, FillsTensorsInOrder) {
  auto program = compiled(module_text(
      {"f32[2]{0}", "f32[2]{0}"},
      "ROOT r = f32[2]{0} custom-call(p0, p1), custom_call_target=\"aten::sub.Tensor\", "
      "backend_config=\"alpha=2\""));
  std::vector<Value> arguments{floats(*program, 0, {5, 5}), floats(*program, 1, {1, 2})};
  EXPECT_EQ(numbers_of(program->run(arguments)), (std::vector<float>{3, 1}));
}

TEST(OperatorCall, GivesTuplesAndLists) {
  auto program = compiled(module_text(
      {"f32[4]{0}"},
      "s = (f32[2]{0}, f32[2]{0}) custom-call(p0), custom_call_target=\"aten::split.Tensor\", "
      "backend_config=\"2\"\n  a = f32[2]{0} get-tuple-element(s), index=0\n"
      "  b = f32[2]{0} get-tuple-element(s), index=1\n"
      "  ROOT r = f32[4]{0} custom-call(b, a), custom_call_target=\"aten::cat\", "
      "backend_config=\"([%0, %1], 0)\""));
  std::vector<Value> arguments{floats(*program, 0, {1, 2, 3, 4})};
  EXPECT_EQ(numbers_of(program->run(arguments)), (std::vector<float>{3, 4, 1, 2}));
}

TEST(OperatorCall, WritesItsOwnCopy) {
  auto program = compiled(
      module_text({"f32[2]{0}"},
                  "n = f32[2]{0} custom-call(p0), custom_call_target=\"aten::neg\"\n"
                  "  w = f32[2]{0} custom-call(n, p0), custom_call_target=\"aten::add_.Tensor\", "
                  "output_to_operand_aliasing={{}: (0, {})}\n"
                  "  ROOT r = (f32[2]{0}, f32[2]{0}, f32[2]{0}) tuple(p0, n, w)"));
  std::vector<Value> arguments{floats(*program, 0, {1, 2})};
  Value result = program->run(arguments);
  EXPECT_EQ(numbers_of(result.element(0)), (std::vector<float>{1, 2}));
  EXPECT_EQ(numbers_of(result.element(1)), (std::vector<float>{-1, -2}));
  EXPECT_EQ(numbers_of(result.element(2)), (std::vector<float>{0, 0}));
}

TEST(OperatorCall, WritesInPlaceWhereNobodyElseReads) {
  auto program = compiled(
      module_text({"f32[256]{0}"},
                  "n = f32[256]{0} custom-call(p0), custom_call_target=\"aten::neg\"\n"
                  "  v = f32[256]{0} custom-call(n), custom_call_target=\"aten::exp_\"\n"
                  "  ROOT w = f32[256]{0} custom-call(v), custom_call_target=\"aten::neg_\""));
  std::vector<Value> arguments{floats(*program, 0, std::vector<float>(256, 0.0f))};
  Value result = program->run(arguments);
  EXPECT_EQ(numbers_of(result), std::vector<float>(256, -1.0f));
  EXPECT_TRUE(result.unique());
}

TEST(OperatorCall, GivesWrittenArgumentsBehindTheReturns) {
  auto program = compiled(module_text({"f32[1]{0}", "f32[1]{0}"},
                                      "ROOT r = (f32[1]{0}, f32[1]{0}) custom-call(p0, p1), "
                                      "custom_call_target=\"graphtest::bump\", "
                                      "output_to_operand_aliasing={{1}: (0, {})}"));
  std::vector<Value> arguments{floats(*program, 0, {1}), floats(*program, 1, {5})};
  Value result = program->run(arguments);
  EXPECT_EQ(numbers_of(result.element(0)), (std::vector<float>{10}));
  EXPECT_EQ(numbers_of(result.element(1)), (std::vector<float>{2}));
  EXPECT_EQ(numbers_of(arguments[0]), (std::vector<float>{1}));
}

TEST(OperatorCall, DoesEffectsOnce) {
  auto program =
      compiled(module_text({"f32[1]{0}"},
                           "n = () custom-call(p0), custom_call_target=\"graphtest::note\", "
                           "custom_call_has_side_effect=true\n  ROOT r = (f32[1]{0}) tuple(p0)"));
  notes = 0;
  std::vector<Value> arguments{floats(*program, 0, {1})};
  program->run(arguments);
  EXPECT_EQ(notes, 1);
}

TEST(OperatorCall, TakesTheModulesWordWithoutAMetaKernel) {
  auto program = compiled(module_text(
      {"f32[2]{0}"},
      "ROOT r = f32[2]{0} custom-call(p0), custom_call_target=\"graphtest::shapeless\""));
  std::vector<Value> arguments{floats(*program, 0, {1, 2})};
  EXPECT_EQ(numbers_of(program->run(arguments)), (std::vector<float>{-1, -2}));
  auto wrong = compiled(module_text(
      {"f32[2]{0}"},
      "ROOT r = f32[3]{0} custom-call(p0), custom_call_target=\"graphtest::shapeless\""));
  arguments = {floats(*wrong, 0, {1, 2})};
  EXPECT_EQ(error_of([&] { wrong->run(arguments); }),
            "hlo: 'r' (custom-call): expected result 0 of graphtest::shapeless to be f32[3], got "
            "f32[2]");
}

TEST(OperatorCall, ChecksWhatAKernelReturns) {
  auto program = compiled(module_text(
      {"f32[2,2]{1,0}"},
      "ROOT r = f32[2,2]{1,0} custom-call(p0), custom_call_target=\"graphtest::liar\""));
  std::vector<Value> arguments{floats(*program, 0, {1, 2, 3, 4})};
  EXPECT_EQ(error_of([&] { program->run(arguments); }),
            "hlo: 'r' (custom-call): expected result 0 of graphtest::liar to be f32[2,2], got "
            "f32[4]");
}

TEST(OperatorCall, NamesTheInstructionThatFails) {
  auto program = compiled(
      module_text({"f32[2]{0}"},
                  "ROOT r = f32[2]{0} custom-call(p0), custom_call_target=\"graphtest::fails\""));
  std::vector<Value> arguments{floats(*program, 0, {1, 2})};
  EXPECT_THROW(program->run(arguments), IndexError);
  EXPECT_EQ(error_of([&] { program->run(arguments); }),
            "hlo: 'r' (custom-call graphtest::fails): fails: expected better luck");
}

TEST(OperatorCall, RefusesAtCompileTime) {
  EXPECT_EQ(compile_error({"f32[2]{0}"},
                          "ROOT r = f32[3]{0} custom-call(p0), custom_call_target=\"aten::neg\""),
            "hlo: 'r' (custom-call): expected shape f32[2], which aten::neg gives, got f32[3]");
  EXPECT_EQ(compile_error({"f32[2]{0}", "f32[3]{0}"},
                          "ROOT r = f32[2]{0} custom-call(p0, p1), "
                          "custom_call_target=\"aten::add.Tensor\""),
            "hlo: 'r' (custom-call): add: expected 'other' to be broadcastable to [2], got [3]");
  EXPECT_EQ(compile_error({"f32[2]{0}"},
                          "ROOT r = f32[2]{0} custom-call(p0), "
                          "custom_call_target=\"aten::bernoulli\""),
            "hlo: 'r' (custom-call): expected custom_call_has_side_effect=true, because "
            "aten::bernoulli draws random numbers");
  EXPECT_EQ(compile_error({"f32[2]{0}"},
                          "ROOT r = () custom-call(p0), "
                          "custom_call_target=\"graphtest::note\""),
            "hlo: 'r' (custom-call): expected custom_call_has_side_effect=true, because "
            "graphtest::note has no results");
  EXPECT_EQ(compile_error({"f32[2]{0}"},
                          "ROOT r = s64[] custom-call(p0), "
                          "custom_call_target=\"graphtest::count\""),
            "hlo: 'r' (custom-call): graphtest::count: expected an operator that returns tensors, "
            "got int, which modules lack");
  EXPECT_EQ(compile_error({"s4[2]{0}"},
                          "ROOT r = s4[2]{0} custom-call(p0), custom_call_target=\"aten::neg\""),
            "hlo: 'r' (custom-call): aten::neg: expected operand 0 to be an array of an element "
            "type that tensors have, got s4[2]");
  EXPECT_EQ(compile_error({"f32[2]{0}"},
                          "ROOT r = f32[2]{0} custom-call(p0), custom_call_target=\"aten::neg\", "
                          "output_to_operand_aliasing={{}: (0, {})}"),
            "hlo: 'r' (custom-call): expected output_to_operand_aliasing within {}, which the "
            "schema of aten::neg says, got {}: (0, {})");
}

// ---- Arguments ----

std::vector<OperatorArgument> read(const char* schema, std::string_view text, size_t operands) {
  return read_operator_arguments(parse_schema(schema), text, operands);
}
std::string again(const char* schema, std::string_view text, size_t operands) {
  FunctionSchema parsed = parse_schema(schema);
  std::vector<OperatorArgument> made = read_operator_arguments(parsed, text, operands);
  std::string printed = operator_arguments_text(parsed, made);
  std::vector<OperatorArgument> back = read_operator_arguments(parsed, printed, operands);
  EXPECT_EQ(operator_arguments_text(parsed, back), printed);
  return printed;
}

TEST(OperatorArguments, PrintAndReadBack) {
  const char* add = "ns::add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
  EXPECT_EQ(again(add, "(%0, %1)", 2), "(%0, %1)");
  EXPECT_EQ(again(add, "alpha=2.5", 2), "(%0, %1, alpha=2.5)");
  EXPECT_EQ(again(add, "(%0, 2, alpha=-1e-05)", 1), "(%0, 2, alpha=-1e-05)");
  EXPECT_EQ(again(add, "%1, %0, alpha=1.5-2j", 2), "(%1, %0, alpha=1.5-2.0j)");
  EXPECT_EQ(again(add, "(%0, True, alpha=-inf)", 1), "(%0, True, alpha=-inf)");
  const char* many =
      "ns::f(Tensor[] xs, Tensor?[] ys, Tensor? z, int[2] k, int[] d, float[]? s, bool[3] m, str "
      "e, "
      "ScalarType t, MemoryFormat? f=None, Device? v=None, Scalar[] c=[], *, Generator? g=None) -> "
      "Tensor";
  EXPECT_EQ(again(many,
                  "([%2, %0], [None, %1], None, 3, [], [1, .5], [True, False, True], 'a\"b\\n', "
                  "bfloat16, channels_last, cpu, [1, 2.5])",
                  3),
            "([%2, %0], [None, %1], None, [3, 3], [], [1.0, 0.5], [True, False, True], "
            "\"a\\\"b\\n\", bfloat16, channels_last, cpu, [1, 2.5])");
  EXPECT_EQ(again("ns::g(int n=-9223372036854775808, float x=1e300) -> Tensor", "", 0),
            "(-9223372036854775808, 1e+300)");
}

TEST(OperatorArguments, FillOptionalTensors) {
  const char* norm = "ns::norm(Tensor x, Tensor? weight, Tensor? bias, float eps) -> Tensor";
  EXPECT_EQ(again(norm, "0.5", 1), "(%0, None, None, 0.5)");
  EXPECT_EQ(again(norm, "0.5", 2), "(%0, %1, None, 0.5)");
  EXPECT_EQ(again(norm, "weight=None, eps=0.5", 2), "(%0, None, %1, 0.5)");
  EXPECT_EQ(again("ns::cat(Tensor[] xs, int dim=0) -> Tensor", "1", 3), "([%0, %1, %2], 1)");
}

TEST(OperatorArguments, SayWhatIsWrong) {
  const char* sum = "ns::sum(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor";
  auto error = [](const char* schema, const char* text, size_t operands) {
    return error_of([&] { read(schema, text, operands); });
  };
  EXPECT_EQ(error(sum, "(%0, 1.5)", 1),
            "ns::sum: column 6 of the arguments: expected int for argument 'dim', got 1.5");
  EXPECT_EQ(error(sum, "(%0, [0], keepdims=True)", 1),
            "ns::sum: column 20 of the arguments: expected the name of an argument, got "
            "'keepdims'; did you mean 'keepdim'?");
  EXPECT_EQ(error(sum, "(%1, None)", 1),
            "ns::sum: column 2 of the arguments: expected an operand below 1, got %1");
  EXPECT_EQ(error(sum, "(%0, None)", 2),
            "ns::sum: expected each operand to be an argument, got 1 of 2 that is unused");
  EXPECT_EQ(error(sum, "(%0)", 1), "ns::sum: expected argument 'dim' (int[1]?), got none");
  EXPECT_EQ(error(sum, "(%0, [0], True, 3)", 1),
            "ns::sum: column 17 of the arguments: expected no more arguments by position, got 3");
  EXPECT_EQ(error(sum, "(%0, [0], self=%0)", 1),
            "ns::sum: column 16 of the arguments: expected 'self' once, got it twice");
  EXPECT_EQ(error(sum, "(%0, [0]", 1),
            "ns::sum: column 9 of the arguments: expected ',' or ')', got the end");
  EXPECT_EQ(error(sum, "(%0, \"x)", 1),
            "ns::sum: column 6 of the arguments: expected a quote to end the string");
  EXPECT_EQ(error(sum, "None", 2), "ns::sum: expected 1 operands, got 2");
  EXPECT_EQ(error("ns::r(Generator? g, ScalarType t, Device d) -> Tensor", "(2, float32, cpu)", 0),
            "ns::r: column 2 of the arguments: expected Generator for argument 'g', got 2; "
            "operators in a module draw from the default generator");
  EXPECT_EQ(error("ns::r(ScalarType t, Device d) -> Tensor", "(floot32, cpu)", 0),
            "ns::r: column 2 of the arguments: expected ScalarType for argument 't', got floot32; "
            "did you mean 'float32'?");
  EXPECT_EQ(error("ns::r(Device d) -> Tensor", "(cuda:1)", 0),
            "ns::r: column 2 of the arguments: expected Device for argument 'd', got cuda:1; "
            "modules run on the CPU");
  EXPECT_EQ(error("ns::r(Storage s) -> Tensor", "(1)", 0),
            "ns::r: column 2 of the arguments: argument 's' is of type Storage, which has no "
            "text");
  EXPECT_EQ(error("ns::two(Tensor[] a, Tensor[] b) -> Tensor", "", 2),
            "ns::two: expected its tensors to be written out, as in ([%0, %1], None), because "
            "several arguments could take any number; got ''");
}

TEST(OperatorArguments, SurviveAnyText) {
  FunctionSchema schema = parse_schema(
      "ns::f(Tensor[] xs, Tensor? z, int[2] k, float s, str e, ScalarType t, Scalar c, Device d, "
      "*, bool b) -> Tensor");
  std::string text = "([%0, %1], None, [2, 3], -1e-05, 'a\\n\\007', float32, 1.5-2j, cpu, b=True)";
  EXPECT_NO_THROW(read_operator_arguments(schema, text, 2));
  std::string_view letters = "([])%,='\"\\-+.0123456789einfjxNoneTrue: \n";
  std::mt19937 random(1);
  auto below = [&](size_t n) { return random() % n; };
  for (int round = 0; round < 50000; ++round) {
    std::string mutated = text;
    for (size_t k = 1 + below(4); k != 0 && !mutated.empty(); --k) {
      size_t at = below(mutated.size());
      switch (below(3)) {
        case 0:
          mutated[at] = letters[below(letters.size())];
          break;
        case 1:
          mutated.erase(at, 1 + below(4));
          break;
        default:
          mutated.insert(at, 1 + below(12), letters[below(letters.size())]);
      }
    }
    try {
      read_operator_arguments(schema, mutated, 2);
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("ns::f: ")) << mutated << error.what();
    }
  }
}

// ---- Facts ----

TEST(OperatorCallFacts, FollowSchemaAndMetaKernel) {
  std::vector<Shape> two{Shape::parse("f32[3,1]"), Shape::parse("f32[4]")};
  OperatorCallFacts facts = operator_call_facts("aten::add.Tensor", two, "alpha=2");
  EXPECT_EQ(facts.shape.to_string(false), "f32[3,4]");
  EXPECT_EQ(facts.arguments, "(%0, %1, alpha=2)");
  EXPECT_TRUE(facts.aliases.empty());
  EXPECT_FALSE(facts.has_side_effect);

  std::vector<Shape> one{Shape::parse("f32[3,4]")};
  facts = operator_call_facts("aten::max.dim", one, "1");
  EXPECT_EQ(facts.shape.to_string(false), "(f32[3], s64[3])");
  facts = operator_call_facts("aten::zeros", {}, "[2, 3], dtype=bfloat16");
  EXPECT_EQ(facts.shape.to_string(false), "bf16[2,3]");
  facts = operator_call_facts("aten::mul_.Tensor", one, "(%0, 2)");
  ASSERT_EQ(facts.aliases.size(), 1u);
  EXPECT_TRUE(facts.aliases[0].output.empty());
  EXPECT_EQ(facts.aliases[0].operand, 0);
  std::vector<Shape> three{Shape::parse("f32[2]"), Shape::parse("f32[2]"), Shape::parse("f32[2]")};
  facts = operator_call_facts("aten::add.out", three, "(%0, %1, out=%2)");
  EXPECT_EQ(facts.shape.to_string(false), "f32[2]");
  ASSERT_EQ(facts.aliases.size(), 1u);
  EXPECT_EQ(facts.aliases[0].operand, 2);
  facts = operator_call_facts("graphtest::halves", one, "3");
  EXPECT_EQ(facts.shape.to_string(false), "(f32[3,4], f32[3,4], f32[3,4])");
  facts = operator_call_facts("aten::bernoulli", one, "");
  EXPECT_TRUE(facts.has_side_effect);

  EXPECT_EQ(error_of([&] { operator_call_facts("graphtest::shapeless", one, ""); }),
            "graphtest::shapeless: expected an operator with a Meta kernel, which gives the shape "
            "of its results; declare the shape by hand");
  EXPECT_NE(error_of([&] { operator_call_facts("aten::ad.Tensor", one, ""); }).find("aten::add"),
            std::string::npos);
}

// ---- Modules as operators ----

TEST(ModuleOperator, RunsTheModule) {
  std::shared_ptr<const Module> module = parse_module(
      module_text({"f32[2]{0}", "f32[2]{0}"},
                  "s = f32[2]{0} custom-call(p0, p1), custom_call_target=\"aten::mul.Tensor\"\n"
                  "  ROOT r = (f32[2]{0}, f32[2]{0}) tuple(s, p0)"));
  EXPECT_EQ(schema_of_module("graphtest::twice", *module),
            "graphtest::twice(Tensor p0, Tensor p1) -> (Tensor, Tensor)");
  Tensor x = lamella::full({2}, 3.0), y = lamella::full({2}, 4.0);
  std::optional<OperatorHandle> found;
  {
    Library defined = define_operator("graphtest::twice", module);
    found = Dispatcher::singleton().findSchema({"graphtest::twice", ""});
    ASSERT_TRUE(found.has_value());
    auto op = found->typed<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&)>();
    auto [product, copy] = op.call(x, y);
    EXPECT_EQ(product.sum().item<double>(), 24.0);
    EXPECT_NE(copy.data_ptr(), x.data_ptr());
    EXPECT_EQ(error_of([&] { op.call(x, lamella::full({3}, 1.0)); }),
              "graphtest::twice: expected 'p1' to be float32[2], got float32[3]");
    EXPECT_NE(error_of([&] { (void)define_operator("graphtest::twice", module); }).find(__FILE__),
              std::string::npos);
  }
  EXPECT_FALSE(Dispatcher::singleton().findSchema({"graphtest::twice", ""}).has_value());
}

// ---- The builder ----

TEST(OperatorOp, AsksTheOperator) {
  Builder b("m");
  Op x = Parameter(&b, 0, Shape::parse("f32[2,1]"), "x");
  Op y = Parameter(&b, 1, Shape::parse("f32[3]"), "y");
  Op sum = OperatorCall(&b, "aten::add.Tensor", {x, y}, "alpha=2");
  Op both = OperatorCall(&b, "graphtest::bump", {sum, y});
  OperatorCall(&b, "graphtest::note", {y});
  StatusOr<BuiltComputation> built = b.Build(both);
  ASSERT_TRUE(built.ok());
  std::string text = built->to_string();
  EXPECT_NE(
      text.find("f32[2,3]{1,0} custom-call(x.1, y.2), custom_call_target=\"aten::add.Tensor\", "
                "backend_config=\"(%0, %1, alpha=2)\""),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("output_to_operand_aliasing={{1}: (0, {})}"), std::string::npos) << text;
  EXPECT_NE(text.find("custom_call_has_side_effect=true"), std::string::npos) << text;
  auto program = make_evaluator(built->module());
  std::vector<Value> arguments{floats(*program, 0, {1, 2}), floats(*program, 1, {10, 20, 30})};
  notes = 0;
  Value result = program->run(arguments);
  EXPECT_EQ(notes, 1);
  EXPECT_EQ(numbers_of(result.element(0)), (std::vector<float>{20, 40, 60}));
  EXPECT_EQ(numbers_of(result.element(1)), (std::vector<float>{22, 42, 62, 23, 43, 63}));
}

TEST(OperatorOp, KeepsErrorsForBuild) {
  Builder b("m");
  Op x = Parameter(&b, 0, Shape::parse("f32[2]"), "x");
  Op y = Parameter(&b, 1, Shape::parse("f32[3]"), "y");
  int line = __LINE__ + 1;
  OperatorCall(&b, "aten::add.Tensor", {x, y});
  EXPECT_EQ(b.Build().status().message(),
            str("Build: OperatorCall at operator_call_test.cpp:", line,
                ": add: expected 'other' to be broadcastable to [2], got [3]"));
}

TEST(OperatorOp, TakesAShapeByHand) {
  Builder b("m");
  Op x = Parameter(&b, 0, Shape::parse("f32[2]"), "x");
  OperatorCallWithShape(&b, "graphtest::shapeless", {x}, Shape::parse("f32[2]"));
  ASSERT_TRUE(b.Build().ok());
}

}  // namespace
}  // namespace lamella::hlo
