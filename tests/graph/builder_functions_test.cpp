// Every function of the builder once: its result is run, printed, read back and run again.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lamella/hlo.h"

namespace lamella::hlo {
namespace {

constexpr ElementType S32 = ElementType::S32, F32 = ElementType::F32, U32 = ElementType::U32;

Op f(Builder* b, std::initializer_list<float> values) { return ConstantR1<float>(b, values); }
Op i(Builder* b, std::initializer_list<int32_t> values) { return ConstantR1<int32_t>(b, values); }

Literal run(std::shared_ptr<const Module> module) {
  return compile(std::move(module))->run({}).to_literal();
}
// The result's text; or the error's.
template <class F>
std::string value(F&& build) {
  Builder b("computation");
  Op root = build(&b);
  StatusOr<BuiltComputation> built = root.valid() ? b.Build(root) : b.Build();
  if (!built.ok()) return built.status().message();
  std::string text = built->to_string();
  std::shared_ptr<const Module> read = parse_module(text);
  EXPECT_EQ(to_string(*read), text);
  std::string result = run(built->module()).ToString();
  EXPECT_EQ(run(read).ToString(), result) << text;
  return result;
}
#define EXPECT_VALUE(expression, expected) \
  EXPECT_EQ(value([&]([[maybe_unused]] Builder* b) { return expression; }), expected)

TEST(Functions, Binary) {
  EXPECT_VALUE(Add(i(b, {1, 2}), i(b, {3, 5})), "s32[2] {4, 7}");
  EXPECT_VALUE(Sub(i(b, {1, 2}), i(b, {3, 5})), "s32[2] {-2, -3}");
  EXPECT_VALUE(Mul(i(b, {1, 2}), i(b, {3, 5})), "s32[2] {3, 10}");
  EXPECT_VALUE(Div(i(b, {7, -7}), i(b, {2, 2})), "s32[2] {3, -3}");
  EXPECT_VALUE(Rem(i(b, {7, -7}), i(b, {4, 4})), "s32[2] {3, -3}");
  EXPECT_VALUE(Max(i(b, {7, -7}), i(b, {4, 4})), "s32[2] {7, 4}");
  EXPECT_VALUE(Min(i(b, {7, -7}), i(b, {4, 4})), "s32[2] {4, -7}");
  EXPECT_VALUE(And(i(b, {12, 7}), i(b, {10, 8})), "s32[2] {8, 0}");
  EXPECT_VALUE(Or(i(b, {12, 7}), i(b, {10, 8})), "s32[2] {14, 15}");
  EXPECT_VALUE(Xor(i(b, {12, 7}), i(b, {10, 8})), "s32[2] {6, 15}");
  EXPECT_VALUE(ShiftLeft(i(b, {1, -1}), i(b, {4, 1})), "s32[2] {16, -2}");
  EXPECT_VALUE(ShiftRightArithmetic(i(b, {16, -2}), i(b, {4, 1})), "s32[2] {1, -1}");
  EXPECT_VALUE(ShiftRightLogical(i(b, {16, -2}), i(b, {4, 1})), "s32[2] {1, 2147483647}");
  EXPECT_VALUE(Pow(f(b, {2, 9}), f(b, {3, 0.5})), "f32[2] {8, 3}");
  EXPECT_VALUE(Atan2(f(b, {0}), f(b, {1})), "f32[1] {0}");
  EXPECT_VALUE(Complex(f(b, {1}), f(b, {2})), "c64[1] {(1, 2)}");
}

TEST(Functions, Operators) {
  EXPECT_VALUE(-i(b, {1}) + i(b, {5}) * i(b, {2}) - i(b, {3}), "s32[1] {6}");
  EXPECT_VALUE(i(b, {7}) / i(b, {2}) % i(b, {2}), "s32[1] {1}");
  EXPECT_VALUE((~i(b, {0}) & i(b, {6})) | (i(b, {1}) ^ i(b, {9})), "s32[1] {14}");
  EXPECT_VALUE(i(b, {-8}) >> i(b, {1}), "s32[1] {-4}");
  EXPECT_VALUE(ConstantR1<uint32_t>(b, {0x80000000u}) >> ConstantR1<uint32_t>(b, {31u}),
               "u32[1] {1}");
  EXPECT_VALUE(i(b, {3}) << i(b, {2}), "s32[1] {12}");
}

TEST(Functions, Broadcasting) {
  auto matrix = [](Builder* b) { return ConstantR2<int32_t>(b, {{1, 2, 3}, {4, 5, 6}}); };
  EXPECT_VALUE(matrix(b) + ConstantR0<int32_t>(b, 10),
               "s32[2,3] { { 11, 12, 13 }, { 14, 15, 16 } }");
  EXPECT_VALUE(ConstantR0<int32_t>(b, 10) - matrix(b), "s32[2,3] { { 9, 8, 7 }, { 6, 5, 4 } }");
  EXPECT_VALUE(Add(matrix(b), i(b, {10, 20}), {0}), "s32[2,3] { { 11, 12, 13 }, { 24, 25, 26 } }");
  EXPECT_VALUE(Add(i(b, {10, 20, 30}), matrix(b), {1}),
               "s32[2,3] { { 11, 22, 33 }, { 14, 25, 36 } }");
  EXPECT_VALUE(matrix(b) * ConstantR2<int32_t>(b, {{1}, {-1}}),
               "s32[2,3] { { 1, 2, 3 }, { -4, -5, -6 } }");
  EXPECT_VALUE(ConstantR2<int32_t>(b, {{1, 2}}) + ConstantR2<int32_t>(b, {{10}, {20}}),
               "s32[2,2] { { 11, 12 }, { 21, 22 } }");
}

TEST(Functions, Comparisons) {
  auto x = [](Builder* b) { return f(b, {1, 2, 3}); };
  auto y = [](Builder* b) { return f(b, {2, 2, 2}); };
  EXPECT_VALUE(Eq(x(b), y(b)), "pred[3] {0, 1, 0}");
  EXPECT_VALUE(Ne(x(b), y(b)), "pred[3] {1, 0, 1}");
  EXPECT_VALUE(Ge(x(b), y(b)), "pred[3] {0, 1, 1}");
  EXPECT_VALUE(Gt(x(b), y(b)), "pred[3] {0, 0, 1}");
  EXPECT_VALUE(Le(x(b), y(b)), "pred[3] {1, 1, 0}");
  EXPECT_VALUE(Lt(x(b), y(b)), "pred[3] {1, 0, 0}");
  EXPECT_VALUE(Compare(x(b), y(b), ComparisonDirection::kLt), "pred[3] {1, 0, 0}");
  EXPECT_VALUE(Compare(x(b), y(b), {}, ComparisonDirection::kLt), "pred[3] {1, 0, 0}");
  EXPECT_VALUE(Compare(x(b), y(b), {}, ComparisonDirection::kLt, Comparison::Type::kFloat),
               "pred[3] {1, 0, 0}");
  // -0 and +0 are one number, but not one in total order.
  auto zeros = [](Builder* b) { return f(b, {-0.f, 0.f}); };
  EXPECT_VALUE(Lt(zeros(b), ScalarLike(zeros(b), 0.0)), "pred[2] {0, 0}");
  EXPECT_VALUE(LtTotalOrder(zeros(b), ScalarLike(zeros(b), 0.0)), "pred[2] {1, 0}");
  EXPECT_VALUE(EqTotalOrder(zeros(b), ScalarLike(zeros(b), 0.0)), "pred[2] {0, 1}");
  EXPECT_VALUE(NeTotalOrder(zeros(b), ScalarLike(zeros(b), 0.0)), "pred[2] {1, 0}");
  EXPECT_VALUE(GeTotalOrder(zeros(b), ScalarLike(zeros(b), 0.0)), "pred[2] {0, 1}");
  EXPECT_VALUE(GtTotalOrder(zeros(b), ScalarLike(zeros(b), 0.0)), "pred[2] {0, 0}");
  EXPECT_VALUE(LeTotalOrder(zeros(b), ScalarLike(zeros(b), 0.0)), "pred[2] {1, 1}");
  EXPECT_VALUE(LtTotalOrder(i(b, {1}), i(b, {2})), "pred[1] {1}");
}

TEST(Functions, Unary) {
  EXPECT_VALUE(Abs(i(b, {-3})), "s32[1] {3}");
  EXPECT_VALUE(Exp(f(b, {0})), "f32[1] {1}");
  EXPECT_VALUE(Expm1(f(b, {0})), "f32[1] {0}");
  EXPECT_VALUE(Floor(f(b, {-1.5})), "f32[1] {-2}");
  EXPECT_VALUE(Ceil(f(b, {-1.5})), "f32[1] {-1}");
  EXPECT_VALUE(Round(f(b, {2.5, -2.5})), "f32[2] {3, -3}");
  EXPECT_VALUE(RoundNearestEven(f(b, {2.5, 3.5})), "f32[2] {2, 4}");
  EXPECT_VALUE(RoundToEven(f(b, {2.5, 3.5})), "f32[2] {2, 4}");
  EXPECT_VALUE(Log(f(b, {1})), "f32[1] {0}");
  EXPECT_VALUE(Log1p(f(b, {0})), "f32[1] {0}");
  EXPECT_VALUE(Sign(f(b, {-3, 0, 2})), "f32[3] {-1, 0, 1}");
  EXPECT_VALUE(Clz(i(b, {1, 0})), "s32[2] {31, 32}");
  EXPECT_VALUE(Cos(f(b, {0})), "f32[1] {1}");
  EXPECT_VALUE(Sin(f(b, {0})), "f32[1] {0}");
  EXPECT_VALUE(Tan(f(b, {0})), "f32[1] {0}");
  EXPECT_VALUE(Tanh(f(b, {0})), "f32[1] {0}");
  EXPECT_VALUE(Acos(f(b, {1})), "f32[1] {0}");
  EXPECT_VALUE(Asin(f(b, {0})), "f32[1] {0}");
  EXPECT_VALUE(Atan(f(b, {0})), "f32[1] {0}");
  EXPECT_VALUE(Sinh(f(b, {0})), "f32[1] {0}");
  EXPECT_VALUE(Cosh(f(b, {0})), "f32[1] {1}");
  EXPECT_VALUE(Asinh(f(b, {0})), "f32[1] {0}");
  EXPECT_VALUE(Acosh(f(b, {1})), "f32[1] {0}");
  EXPECT_VALUE(Atanh(f(b, {0})), "f32[1] {0}");
  EXPECT_VALUE(Logistic(f(b, {0})), "f32[1] {0.5}");
  EXPECT_VALUE(Sqrt(f(b, {9})), "f32[1] {3}");
  EXPECT_VALUE(Rsqrt(f(b, {4})), "f32[1] {0.5}");
  EXPECT_VALUE(Cbrt(f(b, {27})), "f32[1] {3}");
  EXPECT_VALUE(Neg(i(b, {3})), "s32[1] {-3}");
  EXPECT_VALUE(Not(i(b, {0})), "s32[1] {-1}");
  EXPECT_VALUE(PopulationCount(i(b, {7})), "s32[1] {3}");
  EXPECT_VALUE(Erf(f(b, {0})), "f32[1] {0}");
  EXPECT_VALUE(Copy(f(b, {5})), "f32[1] {5}");
  EXPECT_VALUE(Square(f(b, {5})), "f32[1] {25}");
  EXPECT_VALUE(Reciprocal(f(b, {4})), "f32[1] {0.25}");
  auto z = [](Builder* b) { return Complex(f(b, {1}), f(b, {2})); };
  EXPECT_VALUE(Real(z(b)), "f32[1] {1}");
  EXPECT_VALUE(Imag(z(b)), "f32[1] {2}");
  EXPECT_VALUE(Conj(z(b)), "c64[1] {(1, -2)}");
  EXPECT_VALUE(MaybeConjugate(z(b), false), "c64[1] {(1, 2)}");
}

TEST(Functions, KindsOfNumbers) {
  auto x = [](Builder* b) {
    float infinity = std::numeric_limits<float>::infinity();
    return f(b, {1, infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), -0.f});
  };
  EXPECT_VALUE(IsFinite(x(b)), "pred[5] {1, 0, 0, 0, 1}");
  EXPECT_VALUE(IsInf(x(b)), "pred[5] {0, 1, 1, 0, 0}");
  EXPECT_VALUE(IsPosInf(x(b)), "pred[5] {0, 1, 0, 0, 0}");
  EXPECT_VALUE(IsNegInf(x(b)), "pred[5] {0, 0, 1, 0, 0}");
  EXPECT_VALUE(IsNan(x(b)), "pred[5] {0, 0, 0, 1, 0}");
  EXPECT_VALUE(IsNegZero(x(b)), "pred[5] {0, 0, 0, 0, 1}");
  // By std::nextafter.
  EXPECT_VALUE(
      Eq(NextAfter(f(b, {1, 1, 0, 0, -1}), f(b, {2, 0, 1, -1, 1})),
         f(b, {std::nextafter(1.f, 2.f), std::nextafter(1.f, 0.f), std::nextafter(0.f, 1.f),
               std::nextafter(0.f, -1.f), std::nextafter(-1.f, 1.f)})),
      "pred[5] {1, 1, 1, 1, 1}");
}

TEST(Functions, Conversions) {
  EXPECT_VALUE(ConvertElementType(f(b, {1.5, -1.5}), S32), "s32[2] {1, -1}");
  EXPECT_VALUE(BitcastConvertType(f(b, {1}), U32), "u32[1] {1065353216}");
  EXPECT_VALUE(ReducePrecision(f(b, {1.0625}), 8, 3), "f32[1] {1}");
  EXPECT_VALUE(Select(Lt(i(b, {1, 3}), i(b, {2, 2})), i(b, {10, 20}), i(b, {30, 40})),
               "s32[2] {10, 40}");
  EXPECT_VALUE(
      Select(Lt(i(b, {1, 3}), i(b, {2, 2})), ConstantR0<int32_t>(b, 1), ConstantR0<int32_t>(b, 0)),
      "s32[2] {1, 0}");
  EXPECT_VALUE(Select(ConstantR0<bool>(b, false), Tuple(b, {i(b, {1}), f(b, {2})}),
                      Tuple(b, {i(b, {3}), f(b, {4})})),
               "(s32[1] {3}, f32[1] {4})");
  EXPECT_VALUE(Clamp(ConstantR0<int32_t>(b, 0), i(b, {-5, 5, 15}), ConstantR0<int32_t>(b, 10)),
               "s32[3] {0, 5, 10}");
}

TEST(Functions, Constants) {
  EXPECT_VALUE(ConstantR1<int32_t>(b, 3, 7), "s32[3] {7, 7, 7}");
  EXPECT_VALUE(ConstantR3<int32_t>(b, {{{1, 2}}, {{3, 4}}}),
               "s32[2,1,2] { { { 1, 2 } }, { { 3, 4 } } }");
  EXPECT_VALUE(Reshape(ConstantR4<int32_t>(b, {{{{1, 2}}}, {{{3, 4}}}}), {4}),
               "s32[4] {1, 2, 3, 4}");
  EXPECT_VALUE(ConstantR2FromArray2D<int32_t>(b, Array2D<int32_t>({{1}, {2}})),
               "s32[2,1] { {1}, {2} }");
  EXPECT_VALUE(ConstantR3FromArray3D<int32_t>(b, Array3D<int32_t>(1, 1, 1, 5)),
               "s32[1,1,1] { { {5} } }");
  EXPECT_VALUE(Reshape(ConstantR4FromArray4D<int32_t>(b, Array4D<int32_t>(1, 1, 1, 2, 5)), {2}),
               "s32[2] {5, 5}");
  EXPECT_VALUE(ConstantR0WithType(b, ElementType::BF16, 2.5), "bf16[] 2.5");
  EXPECT_VALUE(ConstantLiteral(b, LiteralUtil::MakeTupleOwned(LiteralUtil::CreateR0<float>(1),
                                                              LiteralUtil::CreateR0<bool>(true))),
               "(f32[] 1, pred[] true)");
  EXPECT_VALUE(FullLike(i(b, {1, 2}), 9), "s32[2] {9, 9}");
  EXPECT_VALUE(Iota(b, S32, 3), "s32[3] {0, 1, 2}");
  EXPECT_VALUE(Iota(b, Shape::array(S32, {2, 2}), 0), "s32[2,2] { { 0, 0 }, { 1, 1 } }");
  EXPECT_VALUE(Zero(b, F32), "f32[] 0");
  EXPECT_VALUE(One(b, S32), "s32[] 1");
  EXPECT_VALUE(Zeros(b, Shape::tuple({Shape::array(S32, {2}), Shape::scalar(F32)})),
               "(s32[2] {0, 0}, f32[] 0)");
  EXPECT_VALUE(ZerosLike(i(b, {1, 2})), "s32[2] {0, 0}");
  EXPECT_VALUE(MinValue(b, S32), "s32[] -2147483648");
  EXPECT_VALUE(MaxValue(b, ElementType::U8), "u8[] 255");
  EXPECT_VALUE(MaxValue(b, F32), "f32[] inf");
  EXPECT_VALUE(MaxFiniteValue(b, ElementType::F16), "f16[] 65504");
  EXPECT_VALUE(MinFiniteValue(b, ElementType::F8E4M3FN), "f8e4m3fn[] -448");
  EXPECT_VALUE(MaxValue(b, ElementType::F8E4M3FN), "f8e4m3fn[] 448");
  EXPECT_VALUE(NanValue(b, F32), "f32[] nan");
  EXPECT_VALUE(Eq(Epsilon(b, F32), ConstantR0<float>(b, std::numeric_limits<float>::epsilon())),
               "pred[] true");
}

TEST(Functions, MovingElements) {
  auto matrix = [](Builder* b) { return ConstantR2<int32_t>(b, {{1, 2, 3}, {4, 5, 6}}); };
  EXPECT_VALUE(Broadcast(i(b, {1, 2}), {2}), "s32[2,2] { { 1, 2 }, { 1, 2 } }");
  EXPECT_VALUE(BroadcastInDim(i(b, {1, 2}), {2, 2}, {0}), "s32[2,2] { { 1, 1 }, { 2, 2 } }");
  EXPECT_VALUE(BroadcastInDim(ConstantR2<int32_t>(b, {{1}, {2}}), {2, 2}, {0, 1}),
               "s32[2,2] { { 1, 1 }, { 2, 2 } }");
  EXPECT_VALUE(Reshape(matrix(b), {3, 2}), "s32[3,2] { { 1, 2 }, { 3, 4 }, { 5, 6 } }");
  EXPECT_VALUE(Reshape(matrix(b), {-1}), "s32[6] {1, 2, 3, 4, 5, 6}");
  EXPECT_VALUE(Reshape(matrix(b), {1, 0}, {6}), "s32[6] {1, 4, 2, 5, 3, 6}");
  EXPECT_VALUE(Reshape(Shape::array(S32, {6}), matrix(b)), "s32[6] {1, 2, 3, 4, 5, 6}");
  EXPECT_VALUE(Collapse(matrix(b), {0, 1}), "s32[6] {1, 2, 3, 4, 5, 6}");
  EXPECT_VALUE(Transpose(matrix(b), {1, 0}), "s32[3,2] { { 1, 4 }, { 2, 5 }, { 3, 6 } }");
  EXPECT_VALUE(Rev(i(b, {1, 2, 3}), {0}), "s32[3] {3, 2, 1}");
  EXPECT_VALUE(Slice(matrix(b), {0, 0}, {2, 3}, {1, 2}), "s32[2,2] { { 1, 3 }, { 4, 6 } }");
  EXPECT_VALUE(SliceInDim(matrix(b), 1, 2, 1, 0), "s32[1,3] { { 4, 5, 6 } }");
  EXPECT_VALUE(DynamicSlice(i(b, {1, 2, 3}), {ConstantR0<int32_t>(b, 1)}, {2}), "s32[2] {2, 3}");
  EXPECT_VALUE(DynamicSlice(matrix(b), i(b, {1, 0}), {1, 2}), "s32[1,2] { { 4, 5 } }");
  EXPECT_VALUE(DynamicUpdateSlice(i(b, {1, 2, 3}), i(b, {9}), {ConstantR0<int32_t>(b, 1)}),
               "s32[3] {1, 9, 3}");
  EXPECT_VALUE(ConcatInDim(b, {i(b, {1}), i(b, {2, 3})}, 0), "s32[3] {1, 2, 3}");
  EXPECT_VALUE(Pad(i(b, {1, 2}), Zero(b, S32),
                   [] {
                     PaddingConfig config;
                     auto* d = config.add_dimensions();
                     d->set_edge_padding_low(1);
                     d->set_interior_padding(1);
                     return config;
                   }()),
               "s32[4] {0, 1, 0, 2}");
  EXPECT_VALUE(PadInDim(i(b, {1, 2}), Zero(b, S32), 0, 0, 1), "s32[3] {1, 2, 0}");
  EXPECT_VALUE(Pad(i(b, {1, 2}), Zero(b, S32), MakeEdgePaddingConfig({{1, -1}})), "s32[2] {0, 1}");
  EXPECT_VALUE(GetDimensionSize(matrix(b), 1), "s32[] 3");
  EXPECT_VALUE(SliceInMinorDims(matrix(b), {1}, {3}), "s32[2,2] { { 2, 3 }, { 5, 6 } }");
  EXPECT_VALUE(UpdateSlice(i(b, {1, 2, 3}), i(b, {9}), {2}), "s32[3] {1, 2, 9}");
  EXPECT_VALUE(UpdateSliceInMinorDims(i(b, {1, 2, 3}), i(b, {9}), {0}), "s32[3] {9, 2, 3}");
  EXPECT_VALUE(DynamicSliceInMinorDims(matrix(b), {ConstantR0<int32_t>(b, 2)}, {1}),
               "s32[2,1] { {3}, {6} }");
  EXPECT_VALUE(TorchIndexSelect(Broadcast(ConstantR0<float>(b, 0), {2, 0}), i(b, {}), 1),
               "f32[2,0] { {}, {} }");
  EXPECT_VALUE(TorchGather(matrix(b), ConstantR2<int32_t>(b, {{2, 0}, {1, 1}}), 1),
               "s32[2,2] { { 3, 1 }, { 5, 5 } }");
  EXPECT_VALUE(TorchIndexSelect(matrix(b), i(b, {2, 0}), 1), "s32[2,2] { { 3, 1 }, { 6, 4 } }");
}

TEST(Functions, GatherAndScatter) {
  EXPECT_VALUE(Gather(i(b, {10, 20, 30}), i(b, {2, 0}),
                      [] {
                        GatherDimensionNumbers numbers;
                        numbers.add_collapsed_slice_dims(0);
                        numbers.add_start_index_map(0);
                        numbers.set_index_vector_dim(1);
                        return numbers;
                      }(),
                      {1}),
               "s32[2] {30, 10}");
  auto numbers = [] {
    ScatterDimensionNumbers made;
    made.add_inserted_window_dims(0);
    made.add_scatter_dims_to_operand_dims(0);
    made.set_index_vector_dim(1);
    return made;
  }();
  EXPECT_VALUE(Scatter(i(b, {1, 1, 1}), i(b, {0, 0, 2}), i(b, {10, 20, 30}),
                       CreateScalarAddComputation(S32, b), numbers),
               "s32[3] {31, 1, 31}");
}

TEST(Functions, Reductions) {
  auto matrix = [](Builder* b) { return ConstantR2<int32_t>(b, {{1, 2, 3}, {4, 5, 6}}); };
  auto add = [](Builder* b) { return CreateScalarAddComputation(S32, b); };
  EXPECT_VALUE(Reduce(matrix(b), Zero(b, S32), add(b), {0}), "s32[3] {5, 7, 9}");
  EXPECT_VALUE(ReduceAll(matrix(b), Zero(b, S32), add(b)), "s32[] 21");
  EXPECT_VALUE(Reduce(i(b, {2, 3, 4}), One(b, S32), CreateScalarMultiplyComputation(S32, b), {0}),
               "s32[] 24");
  EXPECT_VALUE(Reduce(i(b, {2, 4, 3}), Zero(b, S32), CreateScalarMaxComputation(S32, b), {0}),
               "s32[] 4");
  EXPECT_VALUE(Reduce(i(b, {2, 4, 3}), MaxValue(b, S32), CreateScalarMinComputation(S32, b), {0}),
               "s32[] 2");
  EXPECT_VALUE(
      Reduce(i(b, {6, 3}), ConstantR0<int32_t>(b, -1), CreateScalarAndComputation(S32, b), {0}),
      "s32[] 2");
  EXPECT_VALUE(Any(Eq(i(b, {6, 3}), i(b, {1, 3}))), "pred[] true");
  EXPECT_VALUE(ArgMax(i(b, {3, 9, 9, 1}), S32, 0), "s32[] 1");
  EXPECT_VALUE(ArgMin(f(b, {3, 9, 1, 1}), S32, 0), "s32[] 2");
  EXPECT_VALUE(ReduceWindow(i(b, {1, 2, 3, 4}), Zero(b, S32), add(b), {2}, {2}, Padding::kValid),
               "s32[2] {3, 7}");
  EXPECT_VALUE(ReduceWindow(i(b, {1, 2, 3}), Zero(b, S32), add(b), {2}, {1}, Padding::kSame),
               "s32[3] {3, 5, 3}");
  EXPECT_VALUE(ReduceWindowWithGeneralPadding(i(b, {1, 2, 3}), Zero(b, S32), add(b), {2}, {1}, {},
                                              {}, {{1, 0}}),
               "s32[3] {1, 3, 5}");
  EXPECT_VALUE(SelectAndScatter(i(b, {1, 5, 2, 7}), CreateScalarGeComputation(S32, b), {2}, {2},
                                Padding::kValid, i(b, {10, 20}), Zero(b, S32), add(b)),
               "s32[4] {0, 10, 0, 20}");
  EXPECT_VALUE(Sort({i(b, {3, 1, 2})}, CreateScalarGtComputation({S32}, b)), "s32[3] {3, 2, 1}");
  EXPECT_VALUE(TopK(i(b, {3, 1, 2}), 2), "(s32[2] {3, 2}, s32[2] {0, 2})");
  EXPECT_VALUE(Map(b, {i(b, {1, 2}), i(b, {3, 4})}, add(b), {0}), "s32[2] {4, 6}");
}

TEST(Functions, Products) {
  auto x = [](Builder* b) { return ConstantR2<float>(b, {{1, 2}, {3, 4}}); };
  EXPECT_VALUE(Dot(x(b), f(b, {1, 10})), "f32[2] {21, 43}");
  EXPECT_VALUE(Dot(x(b), x(b)), "f32[2,2] { { 7, 10 }, { 15, 22 } }");
  EXPECT_VALUE(BatchDot(x(b), true, x(b), false), "f32[2,2] { { 10, 14 }, { 14, 20 } }");
  EXPECT_VALUE(Einsum(x(b), x(b), "ij,kj->ki"), "f32[2,2] { { 5, 11 }, { 11, 25 } }");
  EXPECT_VALUE(Einsum(x(b), f(b, {1, 2}), "ij,k->k"), "f32[2] {10, 20}");
  EXPECT_VALUE(Einsum(x(b), "ij->j"), "f32[2] {4, 6}");
  EXPECT_VALUE(Einsum(x(b), "ij->ji"), "f32[2,2] { { 1, 3 }, { 2, 4 } }");
  EXPECT_VALUE(Dot(i(b, {100}), i(b, {100}), nullptr, ElementType::S64), "s64[] 10000");
  auto image = [](Builder* b) { return Reshape(f(b, {1, 2, 3, 4}), {1, 1, 4}); };
  auto kernel = [](Builder* b) { return Reshape(f(b, {1, 10}), {1, 1, 2}); };
  EXPECT_VALUE(Reshape(Conv(image(b), kernel(b), {1}, Padding::kValid), {3}),
               "f32[3] {21, 32, 43}");
  EXPECT_VALUE(Reshape(ConvWithGeneralPadding(image(b), kernel(b), {2}, {{1, 1}}), {3}),
               "f32[3] {10, 32, 4}");
  EXPECT_VALUE(Reshape(ConvWithGeneralDimensions(image(b), kernel(b), {1}, Padding::kSame,
                                                 CreateDefaultConvDimensionNumbers(1)),
                       {4}),
               "f32[4] {21, 32, 43, 4}");
  EXPECT_VALUE(
      Reshape(ConvGeneral(image(b), kernel(b), {1}, {{0, 0}}, CreateDefaultConvDimensionNumbers(1)),
              {3}),
      "f32[3] {21, 32, 43}");
  EXPECT_VALUE(Reshape(ConvGeneralDilated(image(b), kernel(b), {1}, {{0, 0}}, {1}, {2},
                                          CreateDefaultConvDimensionNumbers(1)),
                       {2}),
               "f32[2] {31, 42}");
}

TEST(Functions, LinearAlgebra) {
  auto triangle = [](Builder* b) { return ConstantR2<float>(b, {{2, 0}, {1, 4}}); };
  EXPECT_VALUE(TriangularSolve(triangle(b), ConstantR2<float>(b, {{2}, {9}}), true, true, false,
                               TriangularSolveOptions::NO_TRANSPOSE),
               "f32[2,1] { {1}, {2} }");
  EXPECT_VALUE(LowerTriangle(Cholesky(ConstantR2<float>(b, {{4, 2}, {2, 17}}), true)),
               "f32[2,2] { { 2, 0 }, { 1, 4 } }");
  EXPECT_VALUE(Fft(ConvertElementType(f(b, {1, 0, 0, 0}), ElementType::C64), FFT, {4}),
               "c64[4] {(1, 0), (1, 0), (1, 0), (1, 0)}");
  EXPECT_VALUE(IdentityMatrix(b, F32, 2, 3), "f32[2,3] { { 1, 0, 0 }, { 0, 1, 0 } }");
  EXPECT_VALUE(GetMatrixDiagonal(triangle(b)), "f32[2] {2, 4}");
  EXPECT_VALUE(GetMatrixDiagonal(triangle(b), -1), "f32[1] {1}");
  EXPECT_VALUE(GetMatrixDiagonal(triangle(b), 2), "f32[0] {}");
  EXPECT_VALUE(Symmetrize(triangle(b)), "f32[2,2] { { 2, 1 }, { 1, 4 } }");
  EXPECT_VALUE(Symmetrize(triangle(b), false), "f32[2,2] { { 2, 0 }, { 0, 4 } }");
  EXPECT_VALUE(Symmetrize(Complex(triangle(b), triangle(b))),
               "c64[2,2] { { (2, 0), (1, -1) }, { (1, 1), (4, 0) } }");
  EXPECT_VALUE(SetMatrixDiagonal(triangle(b), f(b, {7, 8})), "f32[2,2] { { 7, 0 }, { 1, 8 } }");
  EXPECT_VALUE(SetMatrixDiagonal(triangle(b), f(b, {7}), 1), "f32[2,2] { { 2, 7 }, { 1, 4 } }");
  EXPECT_VALUE(SetMatrixDiagonal(triangle(b), f(b, {7}), -1), "f32[2,2] { { 2, 0 }, { 7, 4 } }");
  EXPECT_VALUE(GetMatrixDiagonal(Broadcast(triangle(b), {2}), -7), "f32[2,0] { {}, {} }");
  EXPECT_VALUE(UpperTriangle(triangle(b)), "f32[2,2] { { 2, 0 }, { 0, 4 } }");
  EXPECT_VALUE(TriangleMask(triangle(b), -1), "pred[2,2] { { 0, 0 }, { 1, 0 } }");
  EXPECT_VALUE(GetDiagonalMask(triangle(b), 1), "pred[2,2] { { 0, 1 }, { 0, 0 } }");
  EXPECT_VALUE(TransposeInMinorDims(triangle(b)), "f32[2,2] { { 2, 1 }, { 0, 4 } }");
}

TEST(Functions, Normalisation) {
  auto x = [](Builder* b) { return ConstantR2<float>(b, {{1}, {3}}); };
  EXPECT_VALUE(BatchNormTraining(x(b), f(b, {1}), f(b, {0}), 0.f, 1),
               "(f32[2,1] { {-1}, {1} }, f32[1] {2}, f32[1] {1})");
  EXPECT_VALUE(BatchNormInference(x(b), f(b, {2}), f(b, {1}), f(b, {2}), f(b, {1}), 0.f, 1),
               "f32[2,1] { {-1}, {3} }");
  EXPECT_VALUE(BatchNormGrad(x(b), f(b, {1}), f(b, {2}), f(b, {1}),
                             ConstantR2<float>(b, {{1}, {1}}), 0.f, 1),
               "(f32[2,1] { {0}, {0} }, f32[1] {0}, f32[1] {2})");
}

TEST(Functions, Random) {
  // Within [5, 6), whatever the numbers.
  EXPECT_VALUE(
      Floor(RngUniform(ConstantR0<float>(b, 5), ConstantR0<float>(b, 6), Shape::array(F32, {2}))),
      "f32[2] {5, 5}");
  EXPECT_VALUE(
      IsFinite(RngNormal(ConstantR0<float>(b, 0), ConstantR0<float>(b, 1), Shape::array(F32, {2}))),
      "pred[2] {1, 1}");
  EXPECT_VALUE(
      [&] {
        Op state = ConstantR1<uint64_t>(b, {1, 2});
        Op first = RngBitGenerator(RNG_THREE_FRY, state, Shape::array(U32, {4}));
        Op second = RngBitGenerator(RNG_THREE_FRY, state, Shape::array(U32, {4}));
        return Eq(GetTupleElement(first, 1), GetTupleElement(second, 1));
      }(),
      "pred[4] {1, 1, 1, 1}");
}

TEST(Functions, Control) {
  auto one = [](const char* name, auto make) {
    Builder inner(name);
    Op x = Parameter(&inner, 0, Shape::scalar(S32), "x");
    return inner.Build(make(&inner, x)).value();
  };
  BuiltComputation twice = one("twice", [](Builder*, Op x) { return x + x; });
  BuiltComputation negated = one("negated", [](Builder*, Op x) { return -x; });
  BuiltComputation small =
      one("small", [](Builder* b, Op x) { return Lt(x, ConstantR0<int32_t>(b, 100)); });
  auto s = [](Builder* b, int32_t x) { return ConstantR0<int32_t>(b, x); };
  EXPECT_VALUE(Call(b, twice, {s(b, 4)}), "s32[] 8");
  EXPECT_VALUE(CompositeCall(b, twice, {s(b, 4)}, "my.twice", "{}", 1), "s32[] 8");
  EXPECT_VALUE(While(small, twice, s(b, 3)), "s32[] 192");
  EXPECT_VALUE(Conditional(ConstantR0<bool>(b, true), s(b, 3), twice, s(b, 4), negated), "s32[] 6");
  EXPECT_VALUE(Conditional(s(b, 1), {&twice, &negated}, {s(b, 3), s(b, 4)}), "s32[] -4");
  EXPECT_VALUE(GetTupleElement(Tuple(b, {s(b, 1), s(b, 2)}), 1), "s32[] 2");
  EXPECT_VALUE(OptimizationBarrier(s(b, 5)), "s32[] 5");
  EXPECT_VALUE(
      [&] {
        AfterAll(b, {CreateToken(b), CreateToken(b)});
        return s(b, 1);
      }(),
      "s32[] 1");
}

TEST(Functions, BetweenReplicas) {
  auto add = [](Builder* b) { return CreateScalarAddComputation(S32, b); };
  EXPECT_VALUE(ReplicaId(b), "u32[] 0");
  EXPECT_VALUE(CrossReplicaSum(i(b, {1, 2})), "s32[2] {1, 2}");
  EXPECT_VALUE(AllReduce(i(b, {1, 2}), add(b)), "s32[2] {1, 2}");
  EXPECT_VALUE(AllReduceTuple({i(b, {1}), i(b, {2})}, add(b)), "(s32[1] {1}, s32[1] {2})");
  EXPECT_VALUE(AllGather(i(b, {1, 2}), 0, 1), "s32[2] {1, 2}");
  EXPECT_VALUE(ReduceScatter(i(b, {1, 2}), add(b), 0, 1), "s32[2] {1, 2}");
  EXPECT_VALUE(AllToAll(ConstantR2<int32_t>(b, {{1, 2}}), 0, 1, 1), "s32[1,2] { { 1, 2 } }");
  EXPECT_VALUE(CollectivePermute(i(b, {1, 2}), {{0, 0}}), "s32[2] {1, 2}");
}

TEST(Functions, FeedsAndSizesPrintAndVerify) {
  Builder b("feeds");
  Shape shape = Shape::array(F32, {2});
  Op data = Infeed(&b, shape, "config");
  Op both = InfeedWithToken(CreateToken(&b), shape);
  Outfeed(data, shape, "config");
  Op token = OutfeedWithToken(data, GetTupleElement(both, 1), shape, "");
  Op dynamic = SetDimensionSize(data, ConstantR0<int32_t>(&b, 1), 0);
  EXPECT_EQ(b.GetShape(dynamic)->to_string(), "f32[<=2]{0}");
  Op fixed = RemoveDynamicDimension(dynamic, 0);
  EXPECT_EQ(b.GetShape(fixed)->to_string(), "f32[2]{0}");
  Op reshaped = DynamicReshape(data, {ConstantR0<int32_t>(&b, 1), ConstantR0<int32_t>(&b, 2)},
                               {1, 2}, {false, true});
  EXPECT_EQ(b.GetShape(reshaped)->to_string(), "f32[1,<=2]{1,0}");
  Op broadcast = CollectiveBroadcast(fixed, {});
  Op shaped = DynamicUpdateSliceInMinorDims(broadcast, data, {ConstantR0<int32_t>(&b, 0)});
  Tuple(&b, {shaped, token, MaybeTransposeInMinorDims(reshaped, true)});
  std::string text = b.Build().value().to_string();
  EXPECT_EQ(to_string(*parse_module(text)), text);
}

}  // namespace
}  // namespace lamella::hlo
