// Randomly damaged texts: an error with its position, or a module that prints and reads back.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "lamella/graph/hlo/module.h"

namespace {

using namespace lamella::hlo;

const char* kText =
    R"(HloModule fuzz, entry_computation_layout={(f32[4,3]{1,0})->(f32[4]{0}, s32[4]{0})}

sum.1 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

less.2 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT e = pred[] compare(a, b), direction=LT, type=TOTALORDER
}

step.3 {
  t = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  v = f32[4]{0} get-tuple-element(t), index=1
  w = f32[4]{0} multiply(v, v)
  ROOT r = (s32[], f32[4]{0}) tuple(next, w)
}

more.4 {
  t = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}

ENTRY main.5 {
  x = f32[4,3]{1,0} parameter(0)
  z = f32[] constant(0)
  r = f32[4]{0} reduce(x, z), dimensions={1}, to_apply=sum.1
  k = s32[] constant(0)
  t = (s32[], f32[4]{0}) tuple(k, r)
  w = (s32[], f32[4]{0}) while(t), condition=more.4, body=step.3
  v = f32[4]{0} get-tuple-element(w), index=1
  i = s32[4]{0} iota(), iota_dimension=0
  p = f32[6]{0} pad(v, z), padding=1_1
  q = f32[4]{0} slice(p), slice={[1:5]}
  c = f32[4]{0} custom-call(q), custom_call_target="f", metadata={op_name="g" source_line=7}
  ROOT s = (f32[4]{0}, s32[4]{0}) sort(c, i), dimensions={0}, is_stable=true, to_apply=less.2
}

)";

TEST(Fuzz, DamagedTextsEndInErrorsWithAPlace) {
  const std::string good = kText;
  ASSERT_EQ(to_string(*parse_module(good)), good);
  std::mt19937 random(7);
  auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const std::string alphabet = "{}()[],=:_x0129-\"/* \nfs%<>e";
  int read = 0, refused = 0;
  for (int round = 0; round < 100000; ++round) {
    std::string text = good;
    for (size_t edits = 1 + below(3); edits > 0; --edits) {
      size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text.erase(at, 1 + below(12));
          break;
        case 1:
          text.insert(at, 1, alphabet[below(alphabet.size())]);
          break;
        case 2:
          text[at] = alphabet[below(alphabet.size())];
          break;
        default: {
          size_t from = below(text.size());
          text.insert(at, text.substr(from, 1 + below(40)));
        }
      }
    }
    try {
      auto module = parse_module(text);
      std::string printed = to_string(*module);
      ASSERT_EQ(to_string(*parse_module(printed)), printed) << text;
      ++read;
    } catch (const lamella::Error& error) {
      std::string what = error.what();
      ASSERT_EQ(what.substr(0, 4), "hlo:") << what << "\n" << text;
      ASSERT_NE(what.find("expected"), std::string::npos) << what << "\n" << text;
      ++refused;
    }
  }
  EXPECT_GT(read, 1000);
  EXPECT_GT(refused, 10000);
}

}  // namespace
