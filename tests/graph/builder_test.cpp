// Building computations: instructions, text, errors with their place.
#include <gtest/gtest.h>

#include "lamella/graph/builder/builder.h"
#include "lamella/graph/builder/functions.h"

namespace lamella::hlo {
namespace {

Shape F(std::vector<int64_t> sizes) { return Shape::array(ElementType::F32, std::move(sizes)); }

BuiltComputation add_f32() {
  Builder b("add");
  Op x = Parameter(&b, 0, F({}), "x");
  Op y = Parameter(&b, 1, F({}), "y");
  Add(x, y);
  return b.Build().value();
}

// The text reads back, verifies, and prints as before.
std::string round_trip(const BuiltComputation& built) {
  std::string text = built.to_string();
  EXPECT_EQ(to_string(*parse_module(text)), text);
  return text;
}

TEST(Builder, PrintsWhatItMade) {
  Builder b("sum_of_squares");
  Op x = Parameter(&b, 0, F({2, 3}), "x");
  Op y = Parameter(&b, 1, F({3}), "y");
  Op product = Add(x, y, {1}) * x;
  Op sum = Reduce(product, ConstantR0<float>(&b, 0), add_f32(), {0});
  Tuple(&b, {sum, GetTupleElement(Tuple(&b, {x, y}), 1)});
  EXPECT_EQ(
      round_trip(b.Build().value()),
      R"(HloModule sum_of_squares, entry_computation_layout={(f32[2,3]{1,0}, f32[3]{0})->(f32[3]{0}, f32[3]{0})}

add {
  x.1 = f32[] parameter(0)
  y.2 = f32[] parameter(1)
  ROOT add.3 = f32[] add(x.1, y.2)
}

ENTRY sum_of_squares {
  x.1 = f32[2,3]{1,0} parameter(0)
  y.2 = f32[3]{0} parameter(1)
  broadcast.3 = f32[2,3]{1,0} broadcast(y.2), dimensions={1}
  add.4 = f32[2,3]{1,0} add(x.1, broadcast.3)
  multiply.5 = f32[2,3]{1,0} multiply(add.4, x.1)
  constant.6 = f32[] constant(0)
  reduce.7 = f32[3]{0} reduce(multiply.5, constant.6), dimensions={0}, to_apply=add
  tuple.8 = (f32[2,3]{1,0}, f32[3]{0}) tuple(x.1, y.2)
  get-tuple-element.9 = f32[3]{0} get-tuple-element(tuple.8), index=1
  ROOT tuple.10 = (f32[3]{0}, f32[3]{0}) tuple(reduce.7, get-tuple-element.9)
}

)");
}

TEST(Builder, KeepsTheFirstErrorWithItsPlace) {
  Builder b("wrong");
  Op x = Parameter(&b, 0, F({2}), "x");
  Op y = Parameter(&b, 1, F({3}), "y");
  int line = __LINE__ + 1;
  Op sum = Add(x, y);
  EXPECT_FALSE(sum.valid());
  EXPECT_FALSE(Exp(sum * sum).valid());
  std::string text = str("Add at builder_test.cpp:", line,
                         ": expected 'lhs' and 'rhs' of dimensions that match or are 1, got "
                         "f32[2] and f32[3]");
  EXPECT_EQ(b.first_error().message(), text);
  auto built = b.Build();
  EXPECT_EQ(built.status().message(), "Build: " + text);
  EXPECT_EQ(built.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THROW((void)built.value(), Error);
  // Afterwards the builder is as new.
  Parameter(&b, 0, F({2}), "x");
  EXPECT_TRUE(b.Build().ok());
}

TEST(Builder, ConstantsOfIntegersAreWhole) {
  Builder b("constants");
  EXPECT_TRUE(ConstantR0WithType(&b, ElementType::F32, 1.5f).valid());
  EXPECT_TRUE(ConstantR0WithType(&b, ElementType::S32, 2).valid());
  EXPECT_FALSE(ConstantR0WithType(&b, ElementType::S32, 1.5f).valid());
  EXPECT_NE(
      b.first_error().message().find("expected 'value' to be a whole number for s32, got 1.5"),
      std::string::npos);
}

TEST(Builder, OperatorsHaveAPlace) {
  Builder b("wrong");
  Op x = Parameter(&b, 0, F({2}), "x");
  Op y = Parameter(&b, 1, Shape::array(ElementType::S32, {2}), "y");
  int line = __LINE__ + 1;
  x* y;
  EXPECT_EQ(b.Build().status().message(),
            str("Build: Mul at builder_test.cpp:", line,
                ": expected 'lhs' and 'rhs' of one element type, got f32[2] and s32[2]"));
}

TEST(Builder, CustomCallCarriesEverything) {
  Builder b("calls");
  Op x = Parameter(&b, 0, F({2}), "x");
  Literal literal = LiteralUtil::CreateR1<int32_t>({1, 2});
  CustomCall(&b, "target", {x}, Shape::tuple({F({2}), F({})}), "op\"aque\n", true, {{{0}, {0, {}}}},
             &literal, SCHEDULE_LATEST, API_VERSION_STATUS_RETURNING);
  std::string text = round_trip(b.Build().value());
  EXPECT_NE(
      text.find("custom-call(x.1), custom_call_target=\"target\", "
                "custom_call_has_side_effect=true, output_to_operand_aliasing={{0}: (0, {})}, "
                "schedule=SCHEDULE_LATEST, literal=s32[2]{0} {1, 2}, "
                "api_version=API_VERSION_STATUS_RETURNING, "
                "backend_config=\"op\\\"aque\\n\""),
      std::string::npos)
      << text;
}

}  // namespace
}  // namespace lamella::hlo
