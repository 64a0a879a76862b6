// Shapes, layouts, literals and statuses through the builder's API; errors of the builder.
#include <gtest/gtest.h>

#include "lamella/hlo.h"

namespace lamella::hlo {
namespace {

constexpr ElementType F32 = ElementType::F32, S32 = ElementType::S32;
Shape F(std::vector<int64_t> sizes) { return Shape::array(F32, std::move(sizes)); }

TEST(ShapeUtil, Makes) {
  EXPECT_EQ(ShapeUtil::MakeShape(F32, {2, 3}).to_string(), "f32[2,3]{1,0}");
  EXPECT_EQ(ShapeUtil::MakeShape(F32, {}).to_string(), "f32[]");
  EXPECT_EQ(ShapeUtil::MakeShape(F32, {2, 3}, {true, false}).to_string(), "f32[<=2,3]{1,0}");
  EXPECT_EQ(ShapeUtil::MakeShapeWithLayout(F32, {2, 3}, {0, 1}).to_string(), "f32[2,3]{0,1}");
  EXPECT_EQ(ShapeUtil::MakeTokenShape().to_string(), "token[]");
  EXPECT_EQ(ShapeUtil::MakeNil().to_string(), "()");
  Shape tuple = ShapeUtil::MakeTupleShape({F({2}), ShapeUtil::MakeTuple({F({}), F({4})})});
  EXPECT_EQ(tuple.to_string(false), "(f32[2], (f32[], f32[4]))");
  EXPECT_EQ(ShapeUtil::ChangeElementType(tuple, S32).to_string(false), "(s32[2], (s32[], s32[4]))");
  EXPECT_EQ(ShapeUtil::DeleteDimension(1, F({2, 3, 4})).to_string(), "f32[2,4]{1,0}");
  EXPECT_EQ(ShapeUtil::DropDegenerateDimensions(F({1, 3, 1})).to_string(), "f32[3]{0}");
  EXPECT_EQ(ShapeUtil::PermuteDimensions({2, 0, 1}, F({2, 3, 4})).to_string(), "f32[4,2,3]{0,2,1}");
  EXPECT_EQ(ShapeUtil::PrependMajorDimension(5, F({2, 3})).to_string(), "f32[5,2,3]{2,1,0}");
  EXPECT_EQ(ShapeUtil::MakeValidatedShape(F32, {-1}).status().message(),
            "shape: expected sizes that are not negative, got {-1}");
}

TEST(ShapeUtil, Asks) {
  Shape tuple = ShapeUtil::MakeTupleShape({F({2}), ShapeUtil::MakeTuple({F({}), F({4})})});
  EXPECT_EQ(ShapeUtil::ElementsIn(F({2, 3})), 6);
  EXPECT_EQ(ShapeUtil::ByteSizeOf(F({2, 3})), 24);
  EXPECT_EQ(ShapeUtil::ByteSizeOf(tuple, 8), 16);
  EXPECT_EQ(ShapeUtil::ByteSizeOfPrimitiveType(ElementType::C128), 16);
  EXPECT_TRUE(
      ShapeUtil::Compatible(F({2, 3}), ShapeUtil::MakeShapeWithLayout(F32, {2, 3}, {0, 1})));
  EXPECT_FALSE(ShapeUtil::Equal(F({2, 3}), ShapeUtil::MakeShapeWithLayout(F32, {2, 3}, {0, 1})));
  EXPECT_TRUE(ShapeUtil::IsEffectiveScalar(F({1, 1})));
  EXPECT_TRUE(ShapeUtil::IsNestedTuple(tuple));
  EXPECT_EQ(ShapeUtil::GetSubshape(tuple, {1, 1}).to_string(false), "f32[4]");
  EXPECT_EQ(ShapeUtil::TryGetSubshape(tuple, {0, 0}).status().message(),
            "GetSubshape: expected a part of (f32[2], (f32[], f32[4])), got {0,0}");
  EXPECT_EQ(ShapeUtil::GetLeafCount(tuple), 3);
  EXPECT_EQ(ShapeUtil::SubshapeCount(tuple), 5);
  std::string order;
  ShapeUtil::ForEachSubshape(tuple, [&](const Shape& part, const ShapeIndex& index) {
    order += str(braced(index), part.is_tuple() ? " tuple;" : " leaf;");
  });
  EXPECT_EQ(order, "{} tuple;{0} leaf;{1} tuple;{1,0} leaf;{1,1} leaf;");
  EXPECT_EQ(ShapeUtil::HumanString(tuple), "(f32[2], (f32[], f32[4]))");
  EXPECT_EQ(ShapeUtil::GetDimension(F({2, 3}), -1), 3);
  EXPECT_EQ(F({2, 3}).dimensions(1), 3);
  EXPECT_EQ(tuple.tuple_shapes(0).dimensions_size(), 1);
  EXPECT_FALSE(ShapeUtil::ValidateShape(Shape()).ok());
}

TEST(LayoutUtil, Orders) {
  Layout layout = LayoutUtil::MakeLayoutFromMajorToMinor({1, 0, 2});
  EXPECT_EQ(layout.ToString(), "{2,0,1}");
  EXPECT_EQ(LayoutUtil::Major(layout, 0), 1);
  EXPECT_EQ(LayoutUtil::Minor(layout, 0), 2);
  EXPECT_EQ(LayoutUtil::MakeLogicalToPhysical(layout), (std::vector<int64_t>{1, 0, 2}));
  EXPECT_TRUE(LayoutUtil::IsMonotonicWithDim0Major(LayoutUtil::MakeDescendingLayout(3)));
  EXPECT_TRUE(LayoutUtil::IsMonotonicWithDim0Minor(LayoutUtil::MakeAscendingLayout(3)));
  Shape shape = F({2, 3});
  LayoutUtil::ClearLayout(&shape);
  EXPECT_FALSE(LayoutUtil::HasLayout(shape));
  LayoutUtil::SetToDefaultLayout(&shape);
  EXPECT_TRUE(LayoutUtil::LayoutsInShapesEqual(shape, F({2, 3})));
}

TEST(LiteralUtil, Makes) {
  EXPECT_EQ(LiteralUtil::CreateR0<bool>(true).ToString(), "pred[] true");
  EXPECT_EQ(LiteralUtil::CreateR1<std::complex<float>>({{1, 2}}).ToString(), "c64[1] {(1, 2)}");
  EXPECT_EQ(LiteralUtil::CreateR1<Half>({Half(1.5f)}).ToString(), "f16[1] {1.5}");
  EXPECT_EQ(LiteralUtil::CreateR1<long long>({1}).shape(), Shape::array(ElementType::S64, {1}));
  EXPECT_EQ(LiteralUtil::CreateR1U8("AB").ToString(), "u8[2] {65, 66}");
  EXPECT_EQ(LiteralUtil::CreateFullWithDescendingLayout<int32_t>({2}, 7).ToString(),
            "s32[2] {7, 7}");
  EXPECT_EQ(LiteralUtil::Convert(LiteralUtil::CreateR1<float>({1.5, -2}), S32)->ToString(),
            "s32[2] {1, -2}");
  EXPECT_EQ(LiteralUtil::Convert(LiteralUtil::CreateR1<uint64_t>({~0ull}), F32)->ToString(),
            "f32[1] {1.84467441e+19}");
  EXPECT_EQ(LiteralUtil::MinValue(ElementType::S4).ToString(), "s4[] -8");
  Literal one = LiteralUtil::One(F32);
  EXPECT_EQ(LiteralUtil::MakeTuple({&one, &one}).ToString(), "(f32[] 1, f32[] 1)");
  EXPECT_THROW(Array2D<int>({{1, 2}, {3}}), Error);
}

TEST(StatusOr, HoldsOne) {
  StatusOr<int> good = 3, bad = Status(StatusCode::kNotFound, "expected it, got nothing");
  EXPECT_EQ(*good + good.value() + good.ValueOrDie(), 9);
  EXPECT_TRUE(good.status().ok());
  EXPECT_EQ(bad.status().ToString(), "NOT_FOUND: expected it, got nothing");
  EXPECT_EQ(bad.value_or(5), 5);
  try {
    (void)bad.value();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "expected it, got nothing");
  }
  auto half = [](int x) -> StatusOr<int> {
    if (x % 2 != 0) return Status(StatusCode::kInvalidArgument, "odd");
    return x / 2;
  };
  auto quarter = [&](int x) -> StatusOr<int> {
    LAMELLA_ASSIGN_OR_RETURN(int first, half(x));
    LAMELLA_RETURN_IF_ERROR(half(first).status());
    return half(first);
  };
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).status().message(), "odd");
}

// The message of Build(), without the place.
template <class F>
std::string error_of(F&& build) {
  Builder b("wrong");
  build(&b);
  StatusOr<BuiltComputation> built = b.Build();
  if (built.ok()) return "built";
  std::string text = built.status().message();
  size_t at = text.find(" at builder_shapes_test.cpp:");
  if (at == std::string::npos) return text;
  return text.substr(0, at) + text.substr(text.find(": ", at));
}
#define EXPECT_ERROR(expression, expected)                                          \
  EXPECT_EQ(error_of([&](Builder* b) {                                              \
              [[maybe_unused]] Op x = Parameter(b, 0, F({2, 3}), "x");              \
              [[maybe_unused]] Op n = Parameter(b, 1, Shape::array(S32, {4}), "n"); \
              (void)(expression);                                                   \
            }),                                                                     \
            "Build: " expected)

TEST(Errors, SayWhatWasExpected) {
  EXPECT_ERROR(Add(x, n),
               "Add: expected 'lhs' and 'rhs' of one element type, got f32[2,3] and "
               "s32[4]");
  EXPECT_ERROR(Add(n, ConstantR1<int32_t>(b, {1}), {2}),
               "Add: expected 'broadcast_dimensions' to be empty or {0} for operands of one rank, "
               "got {2}");
  EXPECT_ERROR(
      Add(x, ConstantR1<float>(b, {1, 2, 3})),
      "Add: expected 'broadcast_dimensions' to say how the dimensions of f32[3] match those "
      "of f32[2,3], got {}");
  EXPECT_ERROR(Exp(n), "Exp: expected floating-point or complex numbers, got s32");
  EXPECT_ERROR(Not(x), "Not: expected pred or integers, got f32");
  EXPECT_ERROR(x >> x, "operator>>: expected integers, got f32");
  EXPECT_ERROR(Reshape(x, {4}), "Reshape: expected 6 elements as in f32[2,3], got f32[4]");
  EXPECT_ERROR(Transpose(x, {0, 0}),
               "Transpose: expected dimensions to name each dimension once, got {0,0}");
  EXPECT_ERROR(SliceInDim(x, 0, 9, 1, 1),
               "SliceInDim: expected the range of dimension 1 to lie in 0 to 3 with a positive "
               "stride, got [0:9:1]");
  EXPECT_ERROR(SliceInDim(x, 0, 1, 1, 2),
               "SliceInDim: expected 'dimno' to name a dimension of f32[2,3], got 2");
  EXPECT_ERROR(Slice(x, {0}, {1}, {1}),
               "Slice: expected 2 starts, limits and strides for f32[2,3], got 1, 1 and 1");
  EXPECT_ERROR(GetTupleElement(x, 0),
               "GetTupleElement: expected index to name an element of f32[2,3], got 0");
  EXPECT_ERROR(ConcatInDim(b, {}, 0), "ConcatInDim: expected operands, got none");
  EXPECT_ERROR(Dot(x, x),
               "Dot: expected contracting dimensions of equal sizes, got {1} of f32[2,3] "
               "and {0} of f32[2,3]");
  EXPECT_ERROR(Reduce(x, ConstantR0<float>(b, 0), BuiltComputation(), {0}),
               "Reduce: expected 'computation' to be a computation, got null");
  EXPECT_ERROR(Reduce(x, ConstantR0<float>(b, 0), CreateScalarAddComputation(S32, b), {0}),
               "Reduce: expected parameter 0 of 'add_s32' to be f32[], got s32[]");
  EXPECT_ERROR(Parameter(b, 1, F({}), "again"),
               "Parameter: expected parameter 1 to be made once, got it a second time");
  EXPECT_ERROR(Parameter(b, 3, F({}), "gap"), "expected parameter 2 of 'wrong', got none");
  EXPECT_ERROR(CustomCall(b, "", {x}, F({})),
               "CustomCall: expected 'call_target_name' to be set, got an empty one");
  EXPECT_ERROR(CustomCallWithLayout(b, "t", {x}, F({2}), {}),
               "CustomCallWithLayout: expected 'operand_shapes_with_layout' for 1 operands, got 0");
  EXPECT_ERROR(CustomCall(b, "t", {x}, F({2}), "", false, {{{}, {0, {}}}}),
               "CustomCall: expected output_to_operand_aliasing to join equal shapes, got f32[2] "
               "and f32[2,3]");
  EXPECT_ERROR(Sort({x}, CreateScalarLtComputation({S32}, b)),
               "Sort: expected parameter 0 of 'compare-less-than' to be f32[], got s32[]");
  EXPECT_ERROR(Einsum(x, x, "ij"),
               "Einsum: expected 'einsum_config' as in \"ij,jk->ik\", got 'ij'");
  EXPECT_ERROR(b->ReportError(Status(StatusCode::kInternal, "my own")), "my own");
}

TEST(Errors, OpsOfOthers) {
  Builder one("one"), other("other");
  Op x = Parameter(&one, 0, F({}), "x");
  Op y = Parameter(&other, 0, F({}), "y");
  EXPECT_FALSE((x + y).valid());
  EXPECT_NE(one.first_error().message().find(
                "expected an op of builder 'one', got one of another builder"),
            std::string::npos);
  EXPECT_TRUE(other.first_error().ok());
  EXPECT_FALSE((y + Op()).valid());
  EXPECT_NE(other.first_error().message().find("expected an initialized op, got one that is not"),
            std::string::npos);
  EXPECT_THROW(Op() + Op(), Error);
  EXPECT_THROW(Parameter(static_cast<Builder*>(nullptr), 0, F({}), "x"), Error);
}

TEST(Errors, OpsOfBefore) {
  Builder b("again");
  Op before = Parameter(&b, 0, F({}), "x");
  ASSERT_TRUE(b.Build().ok());
  Parameter(&b, 0, F({}), "x");
  Neg(before);
  EXPECT_NE(b.Build().status().message().find(
                "expected an op of the computation being built, got one of a computation that "
                "'again' built before"),
            std::string::npos);
  EXPECT_EQ(b.Build().status().message(),
            "Build: expected 'again' to have an instruction, got none");
}

TEST(Errors, AtOnceWhereAskedFor) {
  Builder b("at_once");
  b.set_die_immediately_on_error(true);
  Op x = Parameter(&b, 0, F({}), "x");
  EXPECT_THROW(Not(x), Error);
}

TEST(Errors, OfASubBuilderGoToItsParent) {
  Builder b("outer");
  Parameter(&b, 0, F({}), "x");
  auto inner = b.CreateSubBuilder("inner");
  Not(Parameter(inner.get(), 0, F({}), "y"));
  EXPECT_TRUE(inner->BuildAndNoteError().IsNull());
  EXPECT_FALSE(b.Build().ok());
}

TEST(Builder, GoesWithInstructions) {
  Builder b("extras");
  OpMetadata metadata;
  metadata.set_op_type("Add");
  metadata.set_op_name("model/add");
  metadata.set_source_file("model.py");
  metadata.set_source_line(12);
  b.SetOpMetadata(metadata);
  Op x = Parameter(&b, 0, F({2}), "x");
  b.ClearOpMetadata();
  b.SetSharding(sharding_builder::AssignDevice(1));
  FrontendAttributes attributes;
  (*attributes.mutable_map())["key"] = "value";
  b.SetFrontendAttributes(attributes);
  Op y = Neg(x);
  b.ClearSharding();
  b.ClearFrontendAttributes();
  Op z = Abs(y);
  b.SetInstructionFrontendAttribute(z, "a", "1").check();
  b.SetInstructionFrontendAttribute(z, "b", "2").check();
  b.SetInstructionSharding(z, sharding_builder::Tile1D(2)).check();
  b.SetUpAlias({}, 0, {});
  std::string text = b.Build(z).value().to_string();
  EXPECT_EQ(to_string(*parse_module(text)), text);
  for (const char* part :
       {"input_output_alias={ {}: (0, {}, may-alias) }",
        "parameter(0), metadata={op_type=\"Add\" op_name=\"model/add\" source_file=\"model.py\" "
        "source_line=12}\n",
        "negate(x.1), sharding={maximal device=1}, frontend_attributes={key=\"value\"}\n",
        "abs(negate.2), sharding={devices=[2]0,1}, frontend_attributes={a=\"1\",b=\"2\"}\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Builder, TellsShapesOnTheWay) {
  Builder b("on_the_way");
  Op x = Parameter(&b, 0, F({2}), "x");
  EXPECT_EQ(b.GetShape(x)->to_string(), "f32[2]{0}");
  EXPECT_EQ(b.GetProgramShape()->ToString(), "(x.1: f32[2]) -> f32[2]");
  EXPECT_EQ(Builder::latest(), &b);
  EXPECT_FALSE(b.GetShape(Op()).ok());
}

// What one builder made is used by another as often as it likes, and stands in the module once.
TEST(Builder, SharesComputations) {
  Builder b("shares");
  BuiltComputation add = CreateScalarAddComputation(F32, &b);
  Op x = Parameter(&b, 0, F({2}), "x");
  Op zero = ConstantR0<float>(&b, 0);
  Op sum = Reduce(x, zero, add, {0});
  Call(&b, add, {sum, Reduce(x, zero, add, {0})});
  BuiltComputation built = b.Build().value();
  EXPECT_EQ(built.module()->computations.size(), 2u);
  // A text's computation can be called as well.
  Builder outer("outer");
  Call(&outer, BuiltComputation(parse_module(built.to_string())),
       {ConstantR1<float>(&outer, {1, 2})});
  EXPECT_EQ(outer.Build().value().module()->computations.size(), 3u);
}

}  // namespace
}  // namespace lamella::hlo
