// Transfers between programs and the host: infeed, outfeed, send and recv.
#include "lamella/graph/runtime/transfer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "lamella/core/error.h"
#include "lamella/graph/execute/executor.h"

namespace {

using namespace lamella::hlo;
using namespace std::chrono_literals;

Literal run(const std::string& lines) {
  std::shared_ptr<const Module> module = parse_module("HloModule m\nENTRY e {\n" + lines + "}\n");
  return make_evaluator(module)->run({}).to_literal();
}
std::string error_of(const std::string& lines) {
  try {
    run(lines);
  } catch (const lamella::Error& error) {
    return error.what();
  }
  return "nothing";
}
Literal number(double value) { return Literal::scalar(ElementType::F32, value); }

class Transfer : public testing::Test {
 protected:
  void SetUp() override { reset(); }
  void TearDown() override { reset(); }
  static void reset() {
    transfers().clear();
    transfers().set_patience(0ns);
  }
};

constexpr const char* kFeed = R"(
  first = token[] after-all()
  a = (f32[], token[]) infeed(first)
  av = f32[] get-tuple-element(a), index=0
  at = token[] get-tuple-element(a), index=1
  b = ((f32[], s32[2]), token[]) infeed(at)
  bv = (f32[], s32[2]) get-tuple-element(b), index=0
  bt = token[] get-tuple-element(b), index=1
  bf = f32[] get-tuple-element(bv), index=0
  d = f32[] subtract(av, bf)
  out = token[] outfeed(d, bt), outfeed_shape=f32[]
  ROOT r = s32[2] get-tuple-element(bv), index=1
)";

TEST_F(Transfer, InfeedAndOutfeedKeepTheOrder) {
  transfers().infeed().put(number(5));
  std::vector<Literal> pair;
  pair.push_back(number(3));
  pair.push_back(Literal(Shape::array(ElementType::S32, {2})));
  pair[1].set_integer(1, 7);
  transfers().infeed().put(Literal::tuple(std::move(pair)));
  EXPECT_EQ(run(kFeed).to_string(), "{0, 7}");
  EXPECT_EQ(transfers().infeed().size(), 0U);
  auto out = transfers().outfeed().take();
  ASSERT_TRUE(out.has_value());
  EXPECT_EQ(out->real_at(0), 2);
  EXPECT_FALSE(transfers().outfeed().take().has_value());
}

TEST_F(Transfer, WhatDoesNotFitIsAnError) {
  EXPECT_EQ(error_of(kFeed), "hlo: 'a' (infeed): expected f32[] in the queue, got nothing");
  transfers().infeed().put(Literal(Shape::array(ElementType::S32, {2})));
  EXPECT_EQ(error_of(kFeed), "hlo: 'a' (infeed): expected f32[], got s32[2]");
}

TEST_F(Transfer, AProgramWaitsAsLongAsItIsToldTo) {
  transfers().set_patience(20s);
  std::thread host([] {
    std::this_thread::sleep_for(20ms);
    transfers().infeed().put(number(4));
  });
  Literal got = run(R"(
  first = token[] after-all()
  a = (f32[], token[]) infeed(first)
  ROOT r = f32[] get-tuple-element(a), index=0
)");
  host.join();
  EXPECT_EQ(got.real_at(0), 4);
}

TEST_F(Transfer, ChannelsOfTheHostHaveTwoDirections) {
  transfers().to_program(3).put(number(6));
  Literal got = run(R"(
  x = f32[] constant(9)
  first = token[] after-all()
  s = (f32[], u32[], token[]) send(x, first), channel_id=3, is_host_transfer=true
  sd = token[] send-done(s), channel_id=3, is_host_transfer=true
  r = (f32[], u32[], token[]) recv(sd), channel_id=3, is_host_transfer=true
  rd = (f32[], token[]) recv-done(r), channel_id=3, is_host_transfer=true
  ROOT y = f32[] get-tuple-element(rd), index=0
)");
  EXPECT_EQ(got.real_at(0), 6);
  auto sent = transfers().from_program(3).take();
  ASSERT_TRUE(sent.has_value());
  EXPECT_EQ(sent->real_at(0), 9);
}

TEST_F(Transfer, DevicesAndChannelsAreApart) {
  transfers(1).infeed().put(number(1));
  transfers().to_program(4).put(number(1));
  EXPECT_EQ(transfers().infeed().size(), 0U);
  EXPECT_EQ(transfers().to_program(5).size(), 0U);
  transfers(1).clear();
  transfers().clear();
  EXPECT_EQ(transfers().to_program(4).size(), 0U);
}

}  // namespace
