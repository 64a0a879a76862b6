// Functions of the builder's library: decompositions, pooling, random numbers, orders and trees.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lamella/hlo.h"

namespace lamella::hlo {
namespace {

constexpr ElementType S32 = ElementType::S32, F32 = ElementType::F32, F64 = ElementType::F64,
                      U64 = ElementType::U64;

// The arrays that the builder's ops give, as doubles.
template <class F>
std::vector<std::vector<double>> values(F&& build) {
  Builder b("library");
  std::vector<Op> ops = build(&b);
  Op root = Tuple(&b, ops);
  StatusOr<BuiltComputation> built = b.Build(root);
  if (!built.ok()) {
    ADD_FAILURE() << built.status().message();
    return {};
  }
  Literal result = compile(built->module())->run({}).to_literal();
  std::vector<std::vector<double>> all;
  for (const Literal& part : result.elements()) {
    auto& one = all.emplace_back();
    for (int64_t i = 0; i < part.element_count(); ++i) one.push_back(part.real_at(i));
  }
  return all;
}
template <class F>
std::string error(F&& build) {
  Builder b("library");
  build(&b);
  return b.first_error().message();
}
void expect_near(const std::vector<double>& got, const std::vector<double>& want,
                 double tolerance = 1e-6) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
}

Op matrix(Builder* b) { return ConstantR2<double>(b, {{4, 2, 0}, {2, 5, 3}, {0, 3, 6}}); }
const std::vector<double> kMatrix = {4, 2, 0, 2, 5, 3, 0, 3, 6};

TEST(Library, Qr) {
  auto all = values([](Builder* b) {
    Op a = ConstantR2<double>(b, {{3, 1}, {4, 2}, {0, 5}}), q, r, full_q, full_r;
    QrExplicit(a, false, q, r);
    QrExplicit(a, true, full_q, full_r);
    QrDecomposition packed = Qr(a);
    Op product = ProductOfElementaryHouseholderReflectors(packed.q_and_r, packed.taus);
    return std::vector<Op>{BatchDot(q, r), BatchDot(full_q, full_r),
                           BatchDot(full_q, true, full_q, false), Sub(product, q)};
  });
  expect_near(all[0], {3, 1, 4, 2, 0, 5}, 1e-12);
  expect_near(all[1], {3, 1, 4, 2, 0, 5}, 1e-12);
  expect_near(all[2], {1, 0, 0, 0, 1, 0, 0, 0, 1}, 1e-12);
  expect_near(all[3], {0, 0, 0, 0, 0, 0}, 1e-12);
}

TEST(Library, SingularValuesAndEigenvalues) {
  auto all = values([](Builder* b) {
    Op a = ConstantR2<double>(b, {{3, 0}, {0, -2}, {0, 0}});
    SVDResult s = SVD(a);
    Op square = SliceInMinorDims(s.u, {0, 0}, {3, 2});
    SelfAdjointEigResult lower = SelfAdjointEig(matrix(b));
    SelfAdjointEigResult upper =
        SelfAdjointEig(ConstantR2<double>(b, {{4, 2, 0}, {9, 5, 3}, {9, 9, 6}}), /*lower=*/false);
    Op back = BatchDot(Mul(lower.v, lower.w, {1}), false, lower.v, true);
    return std::vector<Op>{s.d, BatchDot(Mul(square, s.d, {1}), false, s.v, true), back,
                           Sub(upper.w, lower.w), lower.w};
  });
  expect_near(all[0], {3, 2}, 1e-12);
  expect_near(all[1], {3, 0, 0, -2, 0, 0}, 1e-12);
  expect_near(all[2], kMatrix, 1e-12);
  expect_near(all[3], {0, 0, 0}, 1e-12);
  EXPECT_TRUE(std::is_sorted(all[4].begin(), all[4].end()));
}

TEST(Library, LuAndDeterminants) {
  auto all = values([](Builder* b) {
    Op a = ConstantR2<double>(b, {{0, 1, 2}, {4, 2, 0}, {2, 5, 3}});
    LuDecompositionResult lu = LuDecomposition(a);
    Op l = Select(TriangleMask(lu.lu, -1), lu.lu, IdentityMatrix(b, F64, 3, 3));
    Op rows = TorchIndexSelect(a, lu.permutation, 0);
    SignAndLogDet det = SLogDet(a);
    return std::vector<Op>{Sub(BatchDot(l, UpperTriangle(lu.lu)), rows),
                           lu.pivots,
                           lu.permutation,
                           det.sign,
                           det.logdet,
                           LogDet(a),
                           LogDet(matrix(b))};
  });
  expect_near(all[0], std::vector<double>(9, 0.0), 1e-12);
  expect_near(all[1], {1, 2, 2});
  expect_near(all[2], {1, 2, 0});
  expect_near({all[3][0] * std::exp(all[4][0])}, {20}, 1e-9);  // -1 (4 3 - 0) + 2 (4 5 - 2 2)
  expect_near(all[5], {std::log(20.0)}, 1e-12);
  expect_near(all[6], {std::log(60.0)}, 1e-12);
}

TEST(Library, Tridiagonal) {
  auto all = values([](Builder* b) {
    // The unused elements are NaN.
    double nan = std::numeric_limits<double>::quiet_NaN();
    Op lower = ConstantR2<double>(b, {{nan, 2, 3}}), main = ConstantR2<double>(b, {{4, 5, 6}});
    Op upper = ConstantR2<double>(b, {{2, 3, nan}});
    Op rhs = ConstantR2<double>(b, {{8, 21, 24}, {4, 2, 0}});
    Op x = tridiagonal::TridiagonalSolver(tridiagonal::kThomas, lower, main, upper, rhs).value();
    Op stacked = ConcatInDim(b, {upper, main, lower}, 0);
    Op columns = TransposeInMinorDims(rhs);
    Op y = tridiagonal::TridiagonalSolver(tridiagonal::kThomas, stacked, columns).value();
    Op back = tridiagonal::TridiagonalMatMul(upper, main, lower, y).value();
    return std::vector<Op>{x, y, back};
  });
  expect_near(all[0], {1, 2, 3, 1, 0, 0}, 1e-12);
  expect_near(all[1], {1, 1, 2, 0, 3, 0}, 1e-12);
  expect_near(all[2], {8, 4, 21, 2, 24, 0}, 1e-12);
}

TEST(Library, Pooling) {
  TensorFormat format(0, 1, {2});
  auto all = values([&](Builder* b) {
    Op x = ConstantR3<float>(b, {{{1, 5, 2, 7}}});
    auto same = MakeSpatialPadding({1, 1, 4}, {1, 1, 3}, {1, 1, 2}, Padding::kSame, format);
    Op ones = ConstantR3<float>(b, {{{6, 6}}});
    return std::vector<Op>{
        MaxPool(x, {1, 1, 2}, {1, 1, 2}, Padding::kValid, format),
        AvgPool(x, {1, 1, 3}, {1, 1, 2}, same, format, false),
        AvgPool(x, {1, 1, 3}, {1, 1, 2}, same, format, true),
        AvgPoolGrad(ones, {1, 1, 4}, {1, 1, 3}, {1, 1, 2}, same, format, false),
        AvgPoolGrad(ones, {1, 1, 5}, {1, 1, 2}, {1, 1, 3}, {{0, 0}}, format, true)};
  });
  expect_near(all[0], {5, 7});
  expect_near(all[1], {8.0 / 3, 4.5});
  expect_near(all[2], {8.0 / 3, 3});
  expect_near(all[3], {2, 2, 5, 3});  // 6 / 3 and 6 / 2: windows of elements 0 to 2 and 2 to 3
  expect_near(all[4], {3, 3, 0, 3, 3});
}

TEST(Library, RandomNumbers) {
  auto all = values([](Builder* b) {
    Op key = ConstantR0<uint64_t>(b, 42), state = ConstantR0<uint64_t>(b, 7);
    Op two = ConstantR1<uint64_t>(b, {1, 2});
    Shape floats = Shape::array(F32, {50, 41}), whole = Shape::array(S32, {2000});
    RngOutput even =
        UniformFloatingPointDistribution(key, state, ThreeFryBitGenerator, ConstantR0<float>(b, -1),
                                         ConstantR0<float>(b, 3), floats);
    RngOutput normal = NormalFloatingPointDistribution(key, two, PhiloxBitGenerator, floats);
    RngOutput integers = UniformIntDistribution(key, even.state, ThreeFryBitGenerator,
                                                ConstantR0<int32_t>(b, -2147483647),
                                                ConstantR0<int32_t>(b, 2147483647), whole);
    Op bits = RngBitGenerator(RNG_THREE_FRY, ConcatScalars(b, {key, state}),
                              Shape::array(ElementType::U32, {50, 41}));
    RngOutput same = ThreeFryBitGenerator(key, state, floats);
    return std::vector<Op>{even.value, normal.value, integers.value, even.state,
                           Sub(GetTupleElement(bits, 1), same.value)};
  });
  auto mean = [](const std::vector<double>& v, double power) {
    double sum = 0;
    for (double one : v) sum += std::pow(one, power);
    return sum / static_cast<double>(v.size());
  };
  EXPECT_TRUE(std::ranges::all_of(all[0], [](double v) { return v >= -1 && v < 3; }));
  EXPECT_NEAR(mean(all[0], 1), 1, 0.1);
  EXPECT_NEAR(mean(all[1], 1), 0, 0.1);
  EXPECT_NEAR(mean(all[1], 2), 1, 0.15);
  EXPECT_NEAR(mean(all[2], 1) / 2147483647, 0, 0.05);
  EXPECT_NEAR(mean(all[2], 2) / 2147483647 / 2147483647, 1.0 / 3, 0.03);
  EXPECT_NE(all[3][0], 7);
  EXPECT_TRUE(std::ranges::all_of(all[4], [](double v) { return v == 0; }));
}

// The numbers of Random123's philox4x32 of ten rounds.
TEST(Library, KeysOfPhilox) {
  auto all = values([](Builder* b) {
    auto number = [&](uint64_t value) { return ConstantR0<uint64_t>(b, value); };
    auto [state, key] = ScramblePhiloxKey(number(uint64_t{7} << 32 | 42));
    Op wanted = ConstantR1<uint64_t>(b, {0, 0x2f50ca6d492add56});
    Op last = ConstantR1<uint64_t>(b, {~uint64_t{0} - 1, 8});
    return std::vector<Op>{
        Eq(key, number(0xd310cceaa28359b3)), Eq(state, wanted),
        PhiloxIncreaseCounter(last, number(5)),
        Eq(PhiloxIncreaseCounter(last, number(1)), ConstantR1<uint64_t>(b, {~uint64_t{0}, 8}))};
  });
  expect_near(all[0], {1});
  expect_near(all[1], {1, 1});
  expect_near(all[2], {3, 9});
  expect_near(all[3], {1, 1});
}

TEST(Library, Orders) {
  auto all = values([](Builder* b) {
    Op x = ConstantR1<float>(b, {3, 1, 4, 1, 5}), places = Iota(b, S32, 5);
    Op best = TopK(x, 2, U64), partitioned = TopKWithPartitions(x, 2, 3);
    Op few = ApproxTopK(b, {x, places}, {ScalarLike(x, 0), ScalarLike(places, 0)}, 3, 0,
                        CreateScalarLtComputation({F32, S32}, b));
    return std::vector<Op>{GetTupleElement(best, 0),        GetTupleElement(best, 1),
                           GetTupleElement(partitioned, 1), GetTupleElement(few, 0),
                           GetTupleElement(few, 1),         ArgMinMax(x, S32, 0, true),
                           ArgMinMax(x, S32, 0, false)};
  });
  expect_near(all[0], {5, 4});
  expect_near(all[1], {4, 2});
  expect_near(all[2], {4, 2});
  expect_near(all[3], {1, 1, 3});
  expect_near(all[4], {1, 3, 0});
  expect_near(all[5], {1});
  expect_near(all[6], {4});
}

TEST(Library, SpecialFunctions) {
  auto all = values([](Builder* b) {
    Op x = ConstantR1<double>(b, {0.5, 2, 6});
    Op half = ConstantR1<double>(b, {0.5});
    return std::vector<Op>{Erfc(x),
                           Lgamma(x),
                           Digamma(ConstantR1<double>(b, {1})),
                           ErfInv(half),
                           Add(Igamma(x, x), Igammac(x, x)),
                           BesselI0e(ScalarLike(x, 0)),
                           BesselI1e(ScalarLike(x, 0)),
                           Zeta(ScalarLike(x, 2), ScalarLike(x, 1))};
  });
  expect_near(all[0], {std::erfc(0.5), std::erfc(2), 2.1519736712498913e-17}, 1e-30 + 1e-16);
  EXPECT_NEAR(all[0][2] / 2.1519736712498913e-17, 1, 1e-12);
  expect_near(all[1], {std::lgamma(0.5), 0, std::log(120.0)}, 1e-12);
  expect_near(all[2], {-0.5772156649015329}, 1e-12);
  expect_near(all[3], {0.4769362762044699}, 1e-12);
  expect_near(all[4], {1, 1, 1}, 1e-12);
  expect_near(all[5], {1}, 1e-12);
  expect_near(all[6], {0}, 1e-12);
  expect_near(all[7], {std::pow(std::acos(-1.0), 2) / 6}, 1e-9);
  EXPECT_NE(
      error([](Builder* b) { Erfc(ConstantR0<int32_t>(b, 1)); }).find("f16, bf16, f32 or f64"),
      std::string::npos);
}

TEST(Library, Products) {
  auto all = values([](Builder* b) {
    Op x = ConstantR3<float>(b, {{{1, 2}}, {{3, 4}}}),
       y = ConstantR3<float>(b, {{{1}, {1}}, {{1}, {2}}});
    RaggedDotDimensionNumbers ragged;
    ragged.mutable_dot_dimension_numbers()->add_lhs_contracting_dimensions(1);
    ragged.mutable_dot_dimension_numbers()->add_rhs_contracting_dimensions(1);
    ragged.add_lhs_ragged_dimensions(0);
    ragged.add_rhs_group_dimensions(0);
    Op rows = ConstantR2<float>(b, {{1, 1}, {2, 0}, {0, 3}});
    return std::vector<Op>{Einsum(x, y, "...ij,...jk->...ik"),
                           RaggedDot(rows, y, ConstantR1<int32_t>(b, {1, 2}), ragged),
                           GetMatrixDiagonalViaGather(rows),
                           GetMatrixDiagonal(rows, 2),
                           GetMatrixDiagonal(rows, -3),
                           TorchIndexSelect(rows, ConstantR1<int32_t>(b, {}), 0),
                           TorchIndexSelect(ConstantLiteral(b, Literal(Shape::array(F32, {2, 0}))),
                                            ConstantR1<int32_t>(b, {}), 1)};
  });
  expect_near(all[0], {3, 11});
  expect_near(all[1], {2, 2, 6});
  expect_near(all[2], {1, 0});
  for (size_t n = 3; n < 7; ++n) EXPECT_TRUE(all[n].empty());
  auto labels = ParseEinsumString("a...c,...cd->a...d", 4, 4).value();
  EXPECT_EQ(labels[0], (std::vector<int64_t>{'a', -2, -1, 'c'}));
  EXPECT_EQ(labels[1], (std::vector<int64_t>{-2, -1, 'c', 'd'}));
  EXPECT_EQ(labels[2], (std::vector<int64_t>{'a', -2, -1, 'd'}));
  EXPECT_FALSE(ParseEinsumString("ab,c", 2, 1).ok());
  EXPECT_FALSE(ParseEinsumString("a.b,c->a", 3, 1).ok());
}

TEST(Library, Trees) {
  auto all = values([](Builder* b) {
    Op one = ConstantR0<float>(b, 1), two = ConstantR0<float>(b, 2),
       three = ConstantR0<float>(b, 3);
    ShapeTree<Op> parts = DisassembleTuple(Tuple(b, {one, Tuple(b, {two, three})})).value();
    *parts.mutable_element({1, 0}) = Add(parts.element({1, 0}), parts.element({1, 1}));
    Op again = AssembleTuple(b, parts);
    return std::vector<Op>{GetTupleElement(GetTupleElement(again, 1), 0),
                           GetTupleElement(again, 0)};
  });
  expect_near(all[0], {5});
  expect_near(all[1], {1});
}

TEST(Library, Donors) {
  Builder b("donors");
  Parameter(&b, 0, Shape::array(F32, {2}), "x");
  b.AddBufferDonor(0, {});
  b.AddBufferDonor(1, {0, 2});
  EXPECT_NE(b.Build()->to_string().find("buffer_donor={(0, {}), (1, {0,2})}"), std::string::npos);
}

TEST(Library, LiteralsAndArrays) {
  Array<float> array({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(array.Slice({0, 1}, {2, 3}), (Array<float>({{2, 3}, {5, 6}})));
  EXPECT_THROW(array.Slice({0, 1}, {2, 4}), Error);
  array.Each([](std::span<const int64_t> index, float* value) {
    *value += static_cast<float>(10 * index[0]);
  });
  float sum = 0;
  std::as_const(array).Each([&](std::span<const int64_t>, float value) { sum += value; });
  EXPECT_EQ(sum, 51);
  Literal literal = LiteralUtil::CreateFromArray(array);
  std::string seen;
  literal.EachCell<float>([&](std::span<const int64_t> index, float value) {
    seen += str(braced(index), "=", value, " ");
  });
  EXPECT_EQ(seen, "{0,0}=1 {0,1}=2 {0,2}=3 {1,0}=14 {1,1}=15 {1,2}=16 ");
  literal.Populate<float>(
      [](std::span<const int64_t> index) { return static_cast<float>(index[0] - index[1]); });
  EXPECT_EQ(literal.ToString(), "f32[2,3] { { 0, -1, -2 }, { 1, 0, -1 } }");
  EXPECT_EQ(literal.Convert(S32).value().ToString(), "s32[2,3] { { 0, -1, -2 }, { 1, 0, -1 } }");
  Literal turned = literal.Relayout({0, 1});
  EXPECT_EQ(turned.shape().to_string(), "f32[2,3]{0,1}");
  EXPECT_EQ(turned.Get<float>({0, 2}), -2);
  std::vector<Literal> parts;
  parts.push_back(std::move(literal));
  Literal tuple = Literal::tuple(std::move(parts));
  EXPECT_EQ(tuple.Relayout({0, 1}, {0}).shape().to_string(), "(f32[2,3]{0,1})");
  EXPECT_THROW(tuple.Relayout({0, 1}, {1}), Error);
}

TEST(Library, TypesAndComparisons) {
  EXPECT_EQ(ParseShape("f32[2,3]{0,1}").value().to_string(), "f32[2,3]{0,1}");
  EXPECT_FALSE(ParseShape("f32[2").ok());
  EXPECT_EQ(primitive_util::BitWidth(ElementType::BF16), 16);
  EXPECT_EQ(primitive_util::ByteWidth(ElementType::C64), 8);
  EXPECT_EQ(primitive_util::SignificandWidth(F32), 24);
  EXPECT_EQ(primitive_util::ExponentWidth(ElementType::F16), 5);
  EXPECT_EQ(primitive_util::UnsignedIntegralTypeForBitWidth(32), ElementType::U32);
  EXPECT_EQ(primitive_util::StringToPrimitiveType("s8").value(), ElementType::S8);
  EXPECT_FALSE(primitive_util::StringToPrimitiveType("s9").ok());
  EXPECT_EQ(primitive_util::NativeToPrimitiveType<double>(), F64);
  Comparison less(Comparison::Direction::kLt, F32);
  EXPECT_TRUE(less.IsPartialOrder() && !less.Inverse() && less.Converse().IsGt());
  Comparison whole(Comparison::Direction::kLt, S32);
  EXPECT_TRUE(whole.IsTotalOrder() && whole.Inverse()->IsGe());
  EXPECT_EQ(Comparison(Comparison::Direction::kEq, F32, Comparison::Order::kTotal).GetType(),
            Comparison::Type::kFloatTotalOrder);
  EXPECT_EQ(less.ToString(), "LT");
}

}  // namespace
}  // namespace lamella::hlo
