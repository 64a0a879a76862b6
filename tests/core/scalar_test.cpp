// Scalar: kinds, conversions and the exact text of their failures.
#include "lamella/core/scalar.h"

#include <cmath>
#include <limits>

#include "testing.h"

namespace {

using namespace lamella;

TEST(Scalar, Kinds) {
  EXPECT_TRUE(Scalar(3).isIntegral(false));
  EXPECT_TRUE(Scalar(true).isBoolean() && Scalar(true).isIntegral(true));
  EXPECT_FALSE(Scalar(true).isIntegral(false));
  EXPECT_TRUE(Scalar(2.5f).isFloatingPoint());
  EXPECT_TRUE(Scalar(Half(2.5f)).isFloatingPoint());
  EXPECT_TRUE(Scalar(complex<float>(1, 2)).isComplex());
  EXPECT_EQ(Scalar(3).type(), kLong);
  EXPECT_EQ(Scalar(3.0).type(), kDouble);
  EXPECT_EQ(Scalar(true).type(), kBool);
  EXPECT_EQ(Scalar(complex<double>()).type(), kComplexDouble);
  EXPECT_EQ(Scalar().toLong(), 0);
  EXPECT_EQ(Scalar(uint64_t{5}).toLong(), 5);
}

TEST(Scalar, Converts) {
  EXPECT_EQ(Scalar(3.7).toLong(), 3);
  EXPECT_EQ(Scalar(-3.7).toLong(), -3);
  EXPECT_EQ(Scalar(-128.9).to<int8_t>(), -128);
  EXPECT_EQ(Scalar(7).toDouble(), 7.0);
  EXPECT_EQ(Scalar(complex<double>(4, 0)).toLong(), 4);
  EXPECT_TRUE(Scalar(0.5).toBool() && !Scalar(0).toBool());
  EXPECT_EQ(float(Scalar(1.5).toHalf()), 1.5f);
  EXPECT_TRUE(Scalar(2).toComplexFloat() == complex<float>(2, 0));
  EXPECT_TRUE(Scalar(complex<double>(1, -2)).toComplexDouble() == complex<double>(1, -2));
  EXPECT_TRUE(std::isinf(Scalar(INFINITY).toFloat()));
  EXPECT_TRUE(std::isnan(Scalar(NAN).toHalf()));
  EXPECT_TRUE(std::isinf(float(Scalar(-INFINITY).to<Float8_e5m2>())));
  // Negative numbers wrap into unsigned types, as in PyTorch.
  EXPECT_EQ(Scalar(-1).to<uint8_t>(), 255);
  EXPECT_EQ(Scalar(-1.0).to<uint8_t>(), 255);
  EXPECT_EQ(Scalar(-1).to<uint64_t>(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(Scalar(std::numeric_limits<int64_t>::min()).toLong(),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Scalar(-0x1p63).toLong(), std::numeric_limits<int64_t>::min());
}

TEST(Scalar, Overflow) {
  EXPECT_EQ(error_of([] { Scalar(300).to<int8_t>(); }),
            "Scalar: expected a value that fits int8, got 300");
  EXPECT_EQ(error_of([] { Scalar(256).to<uint8_t>(); }),
            "Scalar: expected a value that fits uint8, got 256");
  EXPECT_EQ(error_of([] { Scalar(-256).to<uint8_t>(); }),
            "Scalar: expected a value that fits uint8, got -256");
  EXPECT_EQ(error_of([] { Scalar(1e30).toLong(); }),
            "Scalar: expected a value that fits int64, got 1e+30");
  EXPECT_EQ(error_of([] { Scalar(0x1p63).toLong(); }),
            "Scalar: expected a value that fits int64, got 9.22337e+18");
  EXPECT_EQ(error_of([] { Scalar(NAN).to<int32_t>(); }),
            "Scalar: expected a value that fits int32, got nan");
  EXPECT_EQ(error_of([] { Scalar(INFINITY).toLong(); }),
            "Scalar: expected a value that fits int64, got inf");
  EXPECT_EQ(error_of([] { Scalar(1e39).toFloat(); }),
            "Scalar: expected a value that fits float32, got 1e+39");
  EXPECT_EQ(error_of([] { Scalar(70000).toHalf(); }),
            "Scalar: expected a value that fits float16, got 70000");
  EXPECT_EQ(error_of([] { Scalar(INFINITY).to<Float8_e4m3fn>(); }),
            "Scalar: expected a value that fits float8_e4m3fn, got inf");
  EXPECT_EQ(error_of([] { Scalar(complex<double>(1, 2)).toDouble(); }),
            "Scalar: expected a value that fits float64, got (1+2j)");
  EXPECT_EQ(error_of([] { Scalar(std::numeric_limits<uint64_t>::max()); }),
            "Scalar: expected a value that fits int64, got 18446744073709551615");
}

TEST(Scalar, EqualAndNegation) {
  EXPECT_TRUE(Scalar(1).equal(1) && Scalar(1).equal(1.0) && Scalar(1.0).equal(1));
  EXPECT_TRUE(Scalar(complex<double>(1, 0)).equal(1));
  EXPECT_FALSE(Scalar(true).equal(1));
  EXPECT_TRUE(Scalar(true).equal(true));
  EXPECT_EQ((-Scalar(3)).toLong(), -3);
  EXPECT_EQ((-Scalar(2.5)).toDouble(), -2.5);
  EXPECT_EQ(error_of([] { -Scalar(true); }), "Scalar: expected a number to negate, got a bool");
  EXPECT_TRUE(Scalar(complex<double>(1, 2)).conj().equal(complex<double>(1, -2)));
}

}  // namespace
