// Evaluator rules that have no other oracle: what is refused with which message, subnormal numbers,
// reproducible random numbers, in-place writes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "lamella/graph/evaluate/random.h"
#include "lamella/graph/evaluate/strided.h"
#include "lamella/graph/execute/executor.h"
#include "lamella/graph/hlo/small_float.h"

namespace {

using namespace lamella::hlo;

std::unique_ptr<Executable> compiled(const std::string& body) {
  return make_evaluator(
      std::shared_ptr<const Module>(parse_module("HloModule m\nENTRY e {\n" + body + "\n}\n")));
}
template <class T>
std::vector<T> values_of(const Value& value) {
  return {value.values<T>().begin(), value.values<T>().end()};
}
std::string error_of(const std::string& body) {
  try {
    compiled(body)->run({});
  } catch (const lamella::Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(Rules, NameTheInstructionThatTheyRefuse) {
  EXPECT_EQ(error_of("p = f8e4m3fn[] constant(1)\n"
                     "ROOT r = f8e4m3fn[] reduce-precision(p), exponent_bits=3, mantissa_bits=2"),
            "hlo: 'r' (reduce-precision): expected a type with infinities, got f8e4m3fn");
  EXPECT_EQ(
      error_of("p = f32[] constant(1)\nu = u16[] constant(1)\n"
               "ROOT r = s8[] stochastic-convert(p, u)"),
      "hlo: 'r' (stochastic-convert): expected operand 1 to hold unsigned integers of 32 bits "
      "for the elements of f32[], got u16[]");
  EXPECT_EQ(error_of("p = u64[3] constant({1, 2, 3})\n"
                     "ROOT r = (u64[3], u32[2]) rng-bit-generator(p), algorithm=rng_three_fry"),
            "hlo: 'r' (rng-bit-generator): expected a state of 2 words of 64 bits, got u64[3]");
  EXPECT_EQ(error_of("a = s32[] constant(1)\n"
                     "ROOT r = s32[2] rng(a, a), distribution=rng_normal"),
            "hlo: 'r' (rng): expected floating-point numbers, got s32");
  EXPECT_EQ(error_of("a = s32[2] iota(), iota_dimension=0\n"
                     "ROOT r = s32[2] shuffle(a), dimensions={0}, mode=permute, shifts={1}"),
            "hlo: 'r' (shuffle): expected mode=rotate, got mode=permute");
}

TEST(Rules, KeepSubnormalNumbers) {
  auto halved = compiled(
      "x = f32[2] parameter(0)\nh = f32[] constant(0.5)\n"
      "b = f32[2] broadcast(h), dimensions={}\nROOT r = f32[2] multiply(x, b)");
  Shape shape = Shape::array(ElementType::F32, {2});
  Value x = Value::uninitialized(&shape);
  x.values<float>()[0] = std::numeric_limits<float>::min();
  x.values<float>()[1] = 3 * std::numeric_limits<float>::denorm_min();
  Value arguments[] = {x};
  EXPECT_EQ(values_of<float>(halved->run(arguments)),
            (std::vector<float>{std::numeric_limits<float>::min() / 2,
                                2 * std::numeric_limits<float>::denorm_min()}));
}

TEST(Rules, DrawTheSameNumbersFromTheSameState) {
  auto draw = compiled(
      "a = f64[] constant(0)\nb = f64[] constant(1)\n"
      "ROOT r = f64[5] rng(a, b), distribution=rng_normal");
  set_random_state(17, 4);
  std::vector<double> first = values_of<double>(draw->run({}));
  std::vector<double> second = values_of<double>(draw->run({}));
  EXPECT_NE(first, second);
  set_random_state(17, 4);
  EXPECT_EQ(values_of<double>(draw->run({})), first);
  set_random_state(kRandomStateAtStart, 0);
  auto state = compiled("ROOT r = u64[2] rng-get-and-update-state(), delta=3");
  EXPECT_EQ(values_of<uint64_t>(state->run({})), (std::vector<uint64_t>{0x7012395, 0}));
  EXPECT_EQ(values_of<uint64_t>(state->run({})), (std::vector<uint64_t>{0x7012398, 0}));
  // The counter has 128 bits.
  set_random_state(~uint64_t{0}, 1);
  state->run({});
  EXPECT_EQ(values_of<uint64_t>(state->run({})), (std::vector<uint64_t>{2, 2}));
  set_random_state(kRandomStateAtStart, 0);
}

TEST(Rules, DoNotDrawForeverFromARangeWithoutEnd) {
  auto draw = compiled(
      "a = f32[] constant(0)\nb = f32[] constant(inf)\n"
      "ROOT r = f32[3] rng(a, b), distribution=rng_uniform");
  EXPECT_EQ(draw->run({}).values<float>().size(), 3u);
}

TEST(Rules, WriteArgumentsOfNobody) {
  auto update = compiled(
      "x = f32[4] parameter(0)\nu = f32[1] constant({9})\ni = s32[] constant(2)\n"
      "y = f32[4] dynamic-update-slice(x, u, i)\nj = s32[] constant(0)\n"
      "ROOT z = f32[4] dynamic-update-slice(y, u, j)");
  Shape shape = Shape::array(ElementType::F32, {4});
  Value x = Value::zeros(&shape);
  Value arguments[] = {x};
  EXPECT_EQ(values_of<float>(update->run(arguments)), (std::vector<float>{9, 0, 9, 0}));
  EXPECT_EQ(values_of<float>(x), (std::vector<float>{0, 0, 0, 0}));
}

TEST(Strided, CopiesByTheStridesOfALayout) {
  Shape shape = Shape::array(ElementType::S16, {2, 3}, {0, 1});
  EXPECT_EQ(layout_strides(shape), (std::vector<int64_t>{1, 2}));
  std::vector<int16_t> from{1, 2, 3, 4, 5, 6}, to(6);
  std::vector<int64_t> row_major{3, 1};
  copy_strided(ElementType::S16, shape.dimensions(), from.data(), row_major, to.data(),
               layout_strides(shape));
  EXPECT_EQ(to, (std::vector<int16_t>{1, 4, 2, 5, 3, 6}));
}

// Every code comes back, and what lies between two neighbours goes to the nearer one.
TEST(SmallFloats, RoundToTheNearest) {
  for (ElementType type :
       {ElementType::F8E5M2, ElementType::F8E4M3FN, ElementType::F8E4M3, ElementType::F8E3M4,
        ElementType::F8E4M3B11FNUZ, ElementType::F8E5M2FNUZ, ElementType::F8E4M3FNUZ,
        ElementType::F4E2M1FN, ElementType::F8E8M0FNU}) {
    uint32_t codes = type == ElementType::F4E2M1FN ? 16 : 256;
    for (uint32_t code = 0; code < codes; ++code) {
      double value = decode_small_float(type, static_cast<uint8_t>(code));
      if (std::isnan(value)) continue;
      EXPECT_EQ(encode_small_float(type, value), code) << element_name(type);
      if (code % (codes / 2) + 1 == codes / 2 || type == ElementType::F8E8M0FNU) continue;
      double next = decode_small_float(type, static_cast<uint8_t>(code + 1));
      if (!std::isfinite(next)) continue;
      double low = value + (next - value) * 0.49, high = value + (next - value) * 0.51;
      EXPECT_EQ(encode_small_float(type, low), code) << element_name(type);
      EXPECT_EQ(encode_small_float(type, high), code + 1) << element_name(type);
      double tie = value + (next - value) / 2;
      EXPECT_EQ(encode_small_float(type, tie), code + (code & 1)) << element_name(type);
    }
  }
}

}  // namespace
