// Scalar types: numbers, names, traits and the table of promotion.
#include <cmath>
#include <map>

#include "lamella/core/scalar_type.h"
#include "testing.h"

namespace {

using namespace lamella;

TEST(ScalarType, NumbersArePyTorchs) {
  const std::map<ScalarType, int> numbers = {
      {kByte, 0},         {kChar, 1},           {kShort, 2},          {kInt, 3},
      {kLong, 4},         {kHalf, 5},           {kFloat, 6},          {kDouble, 7},
      {kComplexHalf, 8},  {kComplexFloat, 9},   {kComplexDouble, 10}, {kBool, 11},
      {kQInt8, 12},       {kQUInt8, 13},        {kQInt32, 14},        {kBFloat16, 15},
      {kFloat8_e5m2, 23}, {kFloat8_e4m3fn, 24}, {kUInt16, 27},        {kUInt32, 28},
      {kUInt64, 29}};
  for (auto [type, number] : numbers) EXPECT_EQ(static_cast<int>(type), number) << toString(type);
}

TEST(ScalarType, NamesSizesAndTraits) {
  EXPECT_STREQ(toString(kFloat), "Float");
  EXPECT_STREQ(toString(kComplexDouble), "ComplexDouble");
  EXPECT_STREQ(dtype_name(kFloat), "float32");
  EXPECT_STREQ(dtype_name(kBool), "bool");
  EXPECT_STREQ(dtype_name(kFloat8_e4m3fn), "float8_e4m3fn");
  EXPECT_STREQ(toString(static_cast<ScalarType>(60)), "UNKNOWN_SCALAR");
  EXPECT_EQ(element_size(kBool), 1u);
  EXPECT_EQ(element_size(kComplexDouble), 16u);
  EXPECT_EQ(element_size(kUInt32), 4u);
  EXPECT_EQ(element_size(ScalarType::Undefined), 0u);
  EXPECT_TRUE(is_floating_point(kBFloat16) && is_floating_point(kFloat8_e5m2));
  EXPECT_FALSE(is_floating_point(kComplexFloat) || is_floating_point(kLong));
  EXPECT_TRUE(is_complex(kComplexHalf));
  EXPECT_TRUE(is_integral(kBool, true) && !is_integral(kBool, false));
  EXPECT_TRUE(is_integral(kUInt64, false));
  EXPECT_FALSE(is_supported(kQInt8) || is_supported(ScalarType::Undefined));
  EXPECT_FALSE(is_signed_type(kByte) || is_signed_type(kBool) || is_signed_type(kUInt16));
  EXPECT_EQ(CppTypeToScalarType<complex<float>>::value, kComplexFloat);
  EXPECT_EQ(CppTypeToScalarType<long long>::value, kLong);
  static_assert(std::is_same_v<ScalarTypeToCppTypeT<ScalarType::Short>, int16_t>);
  EXPECT_EQ(to_real_type(kComplexFloat), kFloat);
  EXPECT_EQ(to_complex_type(kDouble), kComplexDouble);
  EXPECT_EQ(error_of<TypeError>([] { to_complex_type(kLong); }),
            "to_complex_type: expected a floating-point type, got int64");
}

// Rows and columns in the order of `order`; the cells abbreviate the result.
TEST(ScalarType, PromotionTable) {
  const std::vector<ScalarType> order = {
      kByte,   kChar,        kShort,        kInt,           kLong, kHalf,    kFloat,
      kDouble, kComplexHalf, kComplexFloat, kComplexDouble, kBool, kBFloat16};
  const std::map<std::string, ScalarType> names = {
      {"u1", kByte},        {"i1", kChar},         {"i2", kShort},         {"i4", kInt},
      {"i8", kLong},        {"f2", kHalf},         {"f4", kFloat},         {"f8", kDouble},
      {"c2", kComplexHalf}, {"c4", kComplexFloat}, {"c8", kComplexDouble}, {"b1", kBool},
      {"bf", kBFloat16}};
  const char* table[13][13] = {
      {"u1", "i2", "i2", "i4", "i8", "f2", "f4", "f8", "c2", "c4", "c8", "u1", "bf"},
      {"i2", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c2", "c4", "c8", "i1", "bf"},
      {"i2", "i2", "i2", "i4", "i8", "f2", "f4", "f8", "c2", "c4", "c8", "i2", "bf"},
      {"i4", "i4", "i4", "i4", "i8", "f2", "f4", "f8", "c2", "c4", "c8", "i4", "bf"},
      {"i8", "i8", "i8", "i8", "i8", "f2", "f4", "f8", "c2", "c4", "c8", "i8", "bf"},
      {"f2", "f2", "f2", "f2", "f2", "f2", "f4", "f8", "c2", "c4", "c8", "f2", "f4"},
      {"f4", "f4", "f4", "f4", "f4", "f4", "f4", "f8", "c4", "c4", "c8", "f4", "f4"},
      {"f8", "f8", "f8", "f8", "f8", "f8", "f8", "f8", "c8", "c8", "c8", "f8", "f8"},
      {"c2", "c2", "c2", "c2", "c2", "c2", "c4", "c8", "c2", "c4", "c8", "c2", "c4"},
      {"c4", "c4", "c4", "c4", "c4", "c4", "c4", "c8", "c4", "c4", "c8", "c4", "c4"},
      {"c8", "c8", "c8", "c8", "c8", "c8", "c8", "c8", "c8", "c8", "c8", "c8", "c8"},
      {"u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c2", "c4", "c8", "b1", "bf"},
      {"bf", "bf", "bf", "bf", "bf", "f4", "f4", "f8", "c4", "c4", "c8", "bf", "bf"}};
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t j = 0; j < order.size(); ++j) {
      EXPECT_EQ(promote_types(order[i], order[j]), names.at(table[i][j]))
          << toString(order[i]) << " with " << toString(order[j]);
    }
  }
}

TEST(ScalarType, PromotionWithoutARule) {
  EXPECT_EQ(promote_types(kUInt16, kUInt16), kUInt16);
  EXPECT_EQ(promote_types(kUInt64, kHalf), kHalf);
  EXPECT_EQ(promote_types(kBFloat16, kUInt32), kBFloat16);
  EXPECT_EQ(promote_types(kFloat8_e5m2, kFloat8_e5m2), kFloat8_e5m2);
  EXPECT_EQ(promote_types(kFloat, ScalarType::Undefined), ScalarType::Undefined);
  EXPECT_EQ(error_of([] { promote_types(kUInt16, kInt); }),
            "promote_types: expected types with a common type, got uint16 and int32");
  for (ScalarType other : {kByte, kBool, kComplexFloat, kUInt64}) {
    EXPECT_THROW(promote_types(kUInt16, other), Error);
  }
  EXPECT_THROW(promote_types(kFloat8_e4m3fn, kFloat), Error);
  EXPECT_THROW(promote_types(kFloat8_e4m3fn, kFloat8_e5m2), Error);
}

TEST(ScalarType, CanCast) {
  EXPECT_TRUE(can_cast(kLong, kByte));
  EXPECT_TRUE(can_cast(kLong, kHalf));
  EXPECT_TRUE(can_cast(kFloat, kComplexFloat));
  EXPECT_FALSE(can_cast(kFloat, kLong));
  EXPECT_FALSE(can_cast(kComplexFloat, kFloat));
  EXPECT_FALSE(can_cast(kByte, kBool));
  EXPECT_TRUE(can_cast(kBool, kBool));
  EXPECT_TRUE(can_cast(kBool, kByte));
}

TEST(Complex, Arithmetic) {
  complex<double> a(1, 2), b(3, -4);
  EXPECT_TRUE(a + b == complex<double>(4, -2));
  EXPECT_TRUE(a * b == complex<double>(11, 2));
  EXPECT_TRUE(a / b == complex<double>(-0.2, 0.4));
  EXPECT_TRUE(b / a == complex<double>(-1, -2));
  EXPECT_TRUE(conj(a) == complex<double>(1, -2));
  EXPECT_EQ(norm(b), 25);
  EXPECT_EQ(abs(b), 5);
  // |b|^2 would overflow here.
  complex<double> huge(1e300, 1e300);
  EXPECT_TRUE(huge / huge == complex<double>(1, 0));
  // A zero divisor has no sign, as in PyTorch.
  complex<double> infinite = a / complex<double>(-0.0, -0.0);
  EXPECT_TRUE(infinite.real_ == INFINITY && infinite.imag_ == INFINITY);
}

}  // namespace
