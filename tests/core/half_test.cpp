// The small floating-point types against an independent formula, for all bit patterns.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "lamella/core/half.h"
#include "testing.h"

namespace {

using namespace lamella;

// The value of a pattern by the definition of the format, in double.
double value_of(uint32_t bits, int exponent_bits, int mantissa_bits, bool finite) {
  int bias = (1 << (exponent_bits - 1)) - 1;
  int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
  double sign = (bits >> (exponent_bits + mantissa_bits)) & 1 ? -1.0 : 1.0;
  int top = (1 << exponent_bits) - 1;
  if (exponent == top && finite && mantissa == (1 << mantissa_bits) - 1) return std::nan("");
  if (exponent == top && !finite) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

template <class T>
void check_all(int exponent_bits, int mantissa_bits, bool finite) {
  using Bits = typename T::bits_type;
  uint32_t patterns = 1u << (1 + exponent_bits + mantissa_bits);
  uint32_t sign = patterns / 2;
  for (uint32_t bits = 0; bits < patterns; ++bits) {
    T t(static_cast<Bits>(bits), T::from_bits());
    double expected = value_of(bits, exponent_bits, mantissa_bits, finite);
    auto got = static_cast<float>(t);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
      ASSERT_TRUE(t.isnan()) << bits;
      ASSERT_TRUE(T(got).isnan()) << bits;
      continue;
    }
    ASSERT_FALSE(t.isnan()) << bits;
    ASSERT_EQ(static_cast<double>(got), expected) << bits;
    ASSERT_EQ(std::signbit(got), (bits & sign) != 0) << bits;
    ASSERT_EQ(T(got).x, bits) << "does not come back";
  }
  // Between two neighbours: nearest, and the even one from the middle.
  for (uint32_t bits = 0; bits + 1 < sign; ++bits) {
    double low = value_of(bits, exponent_bits, mantissa_bits, finite);
    double high = value_of(bits + 1, exponent_bits, mantissa_bits, finite);
    bool to_the_end = std::isnan(high) || std::isinf(high);
    if (std::isnan(low) || std::isinf(low)) break;
    // Past the largest number the next one of the same spacing stands for overflow.
    if (to_the_end) high = low + (low - value_of(bits - 1, exponent_bits, mantissa_bits, finite));
    double exact = (low + high) / 2;
    auto middle = static_cast<float>(exact);
    // bfloat16's last overflow lies beyond float.
    if (static_cast<double>(middle) != exact) continue;
    uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(T(middle).x, even) << bits;
    ASSERT_EQ(T(std::nextafter(middle, 0.0f)).x, bits) << bits;
    ASSERT_EQ(T(std::nextafter(middle, INFINITY)).x, bits + 1) << bits;
    ASSERT_EQ(T(-middle).x, even | sign) << bits;
  }
}

TEST(Half, AllPatterns) { check_all<Half>(5, 10, false); }
TEST(Half, AllPatternsOfBFloat16) { check_all<BFloat16>(8, 7, false); }
TEST(Half, AllPatternsOfFloat8e4m3fn) { check_all<Float8_e4m3fn>(4, 3, true); }
TEST(Half, AllPatternsOfFloat8e5m2) { check_all<Float8_e5m2>(5, 2, false); }

TEST(Half, Overflow) {
  EXPECT_EQ(Half(65519.0f).x, 0x7bff);
  EXPECT_EQ(Half(65520.0f).x, 0x7c00);
  EXPECT_EQ(Half(-1e30f).x, 0xfc00);
  EXPECT_EQ(BFloat16(3.4e38f).x, 0x7f80);
  EXPECT_EQ(Float8_e4m3fn(448.0f).x, 0x7e);
  EXPECT_EQ(Float8_e4m3fn(464.0f).x, 0x7e);
  EXPECT_EQ(Float8_e4m3fn(465.0f).x, 0x7f);
  EXPECT_EQ(Float8_e4m3fn(INFINITY).x, 0x7f);
  EXPECT_EQ(Float8_e5m2(57344.0f).x, 0x7b);
  EXPECT_EQ(Float8_e5m2(61440.0f).x, 0x7c);
  EXPECT_EQ(Float8_e5m2(-INFINITY).x, 0xfc);
}

TEST(Half, ArithmeticAndMixedTypes) {
  Half a(1.5f), b(2.25f);
  EXPECT_EQ(float(a + b), 3.75f);
  EXPECT_EQ(float(a * b), 3.375f);
  EXPECT_EQ(float(b / a), 1.5f);
  EXPECT_EQ(float(-a), -1.5f);
  static_assert(std::is_same_v<decltype(a + b), Half>);
  static_assert(std::is_same_v<decltype(a + 1), Half>);
  static_assert(std::is_same_v<decltype(a + 1.0f), float>);
  static_assert(std::is_same_v<decltype(2.0 * a), double>);
  a += b;
  EXPECT_EQ(float(a), 3.75f);
  a *= 2;
  EXPECT_EQ(float(a), 7.5f);
  EXPECT_TRUE(a > b && a == 7.5f && b != 1);
  // Each operation rounds: 2048 + 1 is halfway and goes to the even neighbour.
  EXPECT_EQ(float(Half(2048.0f) + Half(1.0f)), 2048.0f);
}

TEST(Half, Limits) {
  EXPECT_EQ(float(std::numeric_limits<Half>::max()), 65504.0f);
  EXPECT_EQ(float(std::numeric_limits<Half>::min()), 0x1p-14f);
  EXPECT_EQ(float(std::numeric_limits<Half>::denorm_min()), 0x1p-24f);
  EXPECT_EQ(float(std::numeric_limits<Half>::epsilon()), 0x1p-10f);
  EXPECT_EQ(float(std::numeric_limits<BFloat16>::epsilon()), 0x1p-7f);
  EXPECT_EQ(float(std::numeric_limits<BFloat16>::lowest()), -0x1.fep127f);
  EXPECT_EQ(float(std::numeric_limits<Float8_e4m3fn>::max()), 448.0f);
  EXPECT_EQ(float(std::numeric_limits<Float8_e4m3fn>::min()), 0x1p-6f);
  EXPECT_EQ(float(std::numeric_limits<Float8_e4m3fn>::epsilon()), 0.125f);
  EXPECT_EQ(float(std::numeric_limits<Float8_e5m2>::max()), 57344.0f);
  EXPECT_EQ(float(std::numeric_limits<Float8_e5m2>::epsilon()), 0.25f);
  EXPECT_FALSE(std::numeric_limits<Float8_e4m3fn>::has_infinity);
  EXPECT_TRUE(std::numeric_limits<Float8_e5m2>::has_infinity);
  EXPECT_TRUE(std::isinf(float(std::numeric_limits<Half>::infinity())));
}

}  // namespace
