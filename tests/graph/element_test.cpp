// Element types, small floating-point formats, shapes and literals.
#include <gtest/gtest.h>

#include <cmath>

#include "lamella/graph/hlo/literal.h"
#include "lamella/graph/hlo/small_float.h"

namespace {

using namespace lamella::hlo;

TEST(ElementType, NamesAndNumbers) {
  EXPECT_EQ(element_name(ElementType::BF16), "bf16");
  EXPECT_EQ(element_from_name("f8e4m3b11fnuz"), ElementType::F8E4M3B11FNUZ);
  EXPECT_FALSE(element_from_name("float").has_value());
  EXPECT_EQ(static_cast<int>(ElementType::C128), 18);
  EXPECT_EQ(element_bits(ElementType::S4), 4);
  EXPECT_EQ(element_bytes(ElementType::S4), 1);
  for (int i = 1; i < 34; ++i) {
    auto type = static_cast<ElementType>(i);
    EXPECT_EQ(element_from_name(element_name(type)), type);
    if (auto scalar = scalar_type_of(type)) {
      EXPECT_EQ(element_type_of(*scalar), type);
    }
  }
}

// The formats that tensors have too are coded by other code there.
TEST(SmallFloat, AgreesWithTheTypesOfTensors) {
  for (int code = 0; code < 256; ++code) {
    auto bits = static_cast<uint8_t>(code);
    float wide = decode_small_float(ElementType::F8E5M2, bits);
    float fine = decode_small_float(ElementType::F8E4M3FN, bits);
    auto other_wide = static_cast<float>(__builtin_bit_cast(lamella::Float8_e5m2, bits));
    auto other_fine = static_cast<float>(__builtin_bit_cast(lamella::Float8_e4m3fn, bits));
    EXPECT_TRUE(wide == other_wide || (std::isnan(wide) && std::isnan(other_wide))) << code;
    EXPECT_TRUE(fine == other_fine || (std::isnan(fine) && std::isnan(other_fine))) << code;
  }
}
TEST(SmallFloat, NumbersComeBack) {
  for (int i = 1; i < 34; ++i) {
    auto type = static_cast<ElementType>(i);
    if (!is_small_float(type)) continue;
    for (int code = 0; code < (1 << element_bits(type)); ++code) {
      float value = decode_small_float(type, static_cast<uint8_t>(code));
      if (std::isnan(value)) continue;
      EXPECT_EQ(encode_small_float(type, value), code) << element_name(type) << " " << value;
    }
  }
}
TEST(SmallFloat, LimitsOfTheFormats) {
  EXPECT_EQ(decode_small_float(ElementType::F8E4M3FN, 0x7e), 448.0f);
  EXPECT_EQ(decode_small_float(ElementType::F8E5M2, 0x7b), 57344.0f);
  EXPECT_EQ(decode_small_float(ElementType::F8E4M3FNUZ, 0x7f), 240.0f);
  EXPECT_EQ(decode_small_float(ElementType::F8E5M2FNUZ, 0x7f), 57344.0f);
  EXPECT_EQ(decode_small_float(ElementType::F8E4M3B11FNUZ, 0x7f), 30.0f);
  EXPECT_EQ(decode_small_float(ElementType::F8E4M3, 0x77), 240.0f);
  EXPECT_EQ(decode_small_float(ElementType::F8E3M4, 0x6f), 15.5f);
  EXPECT_EQ(decode_small_float(ElementType::F4E2M1FN, 0x7), 6.0f);
  EXPECT_EQ(decode_small_float(ElementType::F8E8M0FNU, 127), 1.0f);
  EXPECT_EQ(encode_small_float(ElementType::F8E5M2, 1e9), 0x7c);       // infinity
  EXPECT_EQ(encode_small_float(ElementType::F8E4M3FN, 1e9), 0x7f);     // NaN
  EXPECT_EQ(encode_small_float(ElementType::F8E4M3FNUZ, -1e9), 0x80);  // NaN
  EXPECT_EQ(encode_small_float(ElementType::F4E2M1FN, -1e9), 0xf);     // -6
  EXPECT_EQ(encode_small_float(ElementType::F8E4M3FNUZ, -1e-9), 0);    // one zero
}

TEST(Shape, ReadsAndPrints) {
  for (const char* text :
       {"f32[]", "f32[2,3]{1,0}", "bf16[4,1]{0,1}", "pred[0]{0}", "token[]", "opaque[]",
        "(f32[], (s32[2]{0}, token[]))", "()", "f32[<=4,2]{1,0}", "f32[8,128]{1,0:T(8,128)}"}) {
    EXPECT_EQ(Shape::parse(text).to_string(), text);
  }
  EXPECT_EQ(Shape::parse("f32[2,3]").to_string(), "f32[2,3]{1,0}");
  EXPECT_TRUE(Shape::parse("f32[2,3]{0,1}").compatible(Shape::parse("f32[2,3]")));
  EXPECT_FALSE(Shape::parse("f32[2,3]{0,1}") == Shape::parse("f32[2,3]"));
  EXPECT_EQ(Shape::parse("(f32[2,3], s8[5])").bytes(), 29);
}
TEST(Shape, Errors) {
  auto error = [](const char* text) {
    try {
      Shape::parse(text);
    } catch (const lamella::Error& e) {
      return std::string(e.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(error("f33[2]"), "shape: line 1, column 1: expected a shape, got 'f33'");
  EXPECT_EQ(error("f32[2"), "shape: line 1, column 6: expected ',', got the end");
  EXPECT_EQ(error("f32[-2]"),
            "shape: line 1, column 5: expected a size that is not negative, got -2");
  EXPECT_EQ(error("f32[2]{1}"),
            "shape: line 1, column 7: expected a layout that names each of 1 dimensions once, got "
            "{1}");
  EXPECT_EQ(error("f32[2] x"), "shape: line 1, column 8: expected the end of the shape, got 'x'");
  EXPECT_EQ(
      error("f32[4294967296,4294967296]"),
      "shape: line 1, column 27: expected at most 2^60 elements, got {4294967296,4294967296}");
}

TEST(Literal, ElementsOfEveryType) {
  for (int i = 1; i < 34; ++i) {
    auto type = static_cast<ElementType>(i);
    if (!is_array_type(type)) continue;
    Literal two(Shape::array(type, {2}));
    two.set_real(1, 1.0);
    EXPECT_EQ(two.real_at(0), type == ElementType::F8E8M0FNU ? std::ldexp(1.0, -127) : 0.0);
    // One bit holds 0 and -1.
    EXPECT_EQ(two.real_at(1), type == ElementType::S1 ? -1.0 : 1.0) << element_name(type);
  }
  Literal nibble(Shape::scalar(ElementType::S4));
  nibble.set_integer(0, 9);
  EXPECT_EQ(nibble.integer_at(0), -7);
}

}  // namespace
