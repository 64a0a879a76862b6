// The evaluator around its rules: which instructions run, how often, in which order, and which may
// write in place.
#include "lamella/graph/execute/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "lamella/custom_call.h"

namespace {

using namespace lamella::hlo;

std::string calls;  // of the targets below, in order

void log_a(void* out, const void** in) {
  calls += 'a';
  *static_cast<float*>(out) = *static_cast<const float*>(in[0]) + 1;
}
void log_b(void* out, const void** in) {
  calls += 'b';
  *static_cast<float*>(out) = *static_cast<const float*>(in[0]) * 2;
}
// One less; the state of the loop below.
void count_down(void* out, const void** in) {
  *static_cast<int32_t*>(out) = *static_cast<const int32_t*>(in[0]) - 1;
}
void is_positive(void* out, const void** in) {
  *static_cast<bool*>(out) = *static_cast<const int32_t*>(in[0]) > 0;
}
void fails(void* out, const void** in, XlaCustomCallStatus* status) {
  std::memcpy(out, in[0], sizeof(float));
  XlaCustomCallStatusSetFailure(status, "too hot", 7);
}
// Adds one where the result lies; its operand lies there as well.
void add_in_place(void* out, const void** in) {
  EXPECT_EQ(out, in[0]);
  *static_cast<float*>(out) += 1;
}
LAMELLA_REGISTER_CUSTOM_CALL_TARGET_WITH_SYM("evaluator_test.a", log_a, "Host");
LAMELLA_REGISTER_CUSTOM_CALL_TARGET_WITH_SYM("evaluator_test.b", log_b, "Host");
LAMELLA_REGISTER_CUSTOM_CALL_TARGET_WITH_SYM("evaluator_test.count_down", count_down, "Host");
LAMELLA_REGISTER_CUSTOM_CALL_TARGET_WITH_SYM("evaluator_test.is_positive", is_positive, "Host");
LAMELLA_REGISTER_CUSTOM_CALL_TARGET_WITH_SYM("evaluator_test.fails", fails, "Host");
LAMELLA_REGISTER_CUSTOM_CALL_TARGET_WITH_SYM("evaluator_test.add_in_place", add_in_place, "Host");

std::unique_ptr<Executable> compiled(const std::string& text) {
  return make_evaluator(std::shared_ptr<const Module>(parse_module("HloModule m\n" + text)));
}
// Runs a module of float32 scalars.
std::vector<float> run(const Executable& executable, std::vector<float> numbers) {
  Shape scalar = Shape::scalar(ElementType::F32);
  std::vector<Value> arguments;
  for (float number : numbers) {
    arguments.push_back(Value::uninitialized(&scalar));
    arguments.back().values<float>()[0] = number;
  }
  Value result = executable.run(arguments);
  for (size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(arguments[i].values<float>()[0], numbers[i]) << "argument " << i << " was written";
  }
  std::vector<float> out;
  if (!result.shape().is_tuple()) return {result.values<float>()[0]};
  for (size_t i = 0; i < result.size(); ++i) out.push_back(result.element(i).values<float>()[0]);
  return out;
}
std::vector<float> run(const std::string& text, std::vector<float> numbers) {
  return run(*compiled(text), std::move(numbers));
}
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const lamella::Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(Evaluator, LeavesOutWhatNobodyReads) {
  calls.clear();
  EXPECT_EQ(run(R"(ENTRY e {
    x = f32[] parameter(0)
    unused = f32[] custom-call(x), custom_call_target="evaluator_test.a"
    ROOT used = f32[] custom-call(x), custom_call_target="evaluator_test.b"
  })",
                {3}),
            std::vector<float>{6});
  EXPECT_EQ(calls, "b");
}

TEST(Evaluator, KeepsEffectsOnceAndInOrder) {
  calls.clear();
  EXPECT_EQ(run(R"(
  act {
    y = f32[] parameter(0)
    ROOT b = f32[] custom-call(y), custom_call_target="evaluator_test.b", custom_call_has_side_effect=true
  }
  ENTRY e {
    x = f32[] parameter(0)
    one = f32[] custom-call(x), custom_call_target="evaluator_test.a", custom_call_has_side_effect=true
    two = f32[] call(x), to_apply=act
    three = f32[] custom-call(x), custom_call_target="evaluator_test.a", custom_call_has_side_effect=true
    ROOT r = (f32[]) tuple(x)
  })",
                {3}),
            std::vector<float>{3});
  EXPECT_EQ(calls, "aba");
}

TEST(Evaluator, LoopsAndBranches) {
  auto loop = compiled(R"(
  more {
    n = s32[] parameter(0)
    ROOT p = pred[] custom-call(n), custom_call_target="evaluator_test.is_positive"
  }
  less {
    n = s32[] parameter(0)
    ROOT m = s32[] custom-call(n), custom_call_target="evaluator_test.count_down"
  }
  ENTRY e {
    n = s32[] parameter(0)
    ROOT w = s32[] while(n), condition=more, body=less
  })");
  Shape number = Shape::scalar(ElementType::S32);
  for (int32_t start : {100000, 0, -7}) {
    Value n = Value::uninitialized(&number);
    n.values<int32_t>()[0] = start;
    Value arguments[] = {n};
    EXPECT_EQ(loop->run(arguments).values<int32_t>()[0], start > 0 ? 0 : start);
    EXPECT_EQ(n.values<int32_t>()[0], start);
  }

  // A number that names no branch takes the last; the operands of the others are not touched.
  auto branches = compiled(R"(
  first { ROOT a = f32[] parameter(0) }
  second {
    a = f32[] parameter(0)
    ROOT b = f32[] custom-call(a), custom_call_target="evaluator_test.b"
  }
  ENTRY e {
    n = s32[] parameter(0)
    x = f32[] parameter(1)
    ROOT c = f32[] conditional(n, x, x), branch_computations={first, second}
  })");
  Shape real = Shape::scalar(ElementType::F32);
  for (int32_t which : {0, 1, 2, -1}) {
    Value arguments[] = {Value::uninitialized(&number), Value::uninitialized(&real)};
    arguments[0].values<int32_t>()[0] = which;
    arguments[1].values<float>()[0] = 5;
    EXPECT_EQ(branches->run(arguments).values<float>()[0], which == 0 ? 5 : 10);
  }
}

TEST(Evaluator, WritesOnlyWhatNobodyElseReads) {
  // The operand is an argument, a constant, read later, or part of the result: copied first.
  EXPECT_EQ(run(R"(ENTRY e {
    x = f32[] parameter(0)
    c = f32[] constant(7)
    a = f32[] custom-call(x), custom_call_target="evaluator_test.add_in_place", output_to_operand_aliasing={{}: (0, {})}
    b = f32[] custom-call(c), custom_call_target="evaluator_test.add_in_place", output_to_operand_aliasing={{}: (0, {})}
    d = f32[] custom-call(a), custom_call_target="evaluator_test.add_in_place", output_to_operand_aliasing={{}: (0, {})}
    f = f32[] custom-call(d), custom_call_target="evaluator_test.add_in_place", output_to_operand_aliasing={{}: (0, {})}
    ROOT r = (f32[], f32[], f32[], f32[], f32[], f32[]) tuple(x, c, a, b, d, f)
  })",
                {3}),
            (std::vector<float>{3, 7, 4, 8, 5, 6}));
  // A constant keeps its value from run to run.
  auto again = compiled(R"(ENTRY e {
    c = f32[] constant(7)
    ROOT b = f32[] custom-call(c), custom_call_target="evaluator_test.add_in_place", output_to_operand_aliasing={{}: (0, {})}
  })");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(*again, {}), std::vector<float>{8});
}

TEST(Evaluator, SharesTuplesWithoutMixingThem) {
  EXPECT_EQ(run(R"(ENTRY e {
    x = f32[] parameter(0)
    y = f32[] parameter(1)
    t = (f32[], f32[]) tuple(x, y)
    u = ((f32[], f32[]), f32[]) tuple(t, x)
    v = (f32[], f32[]) get-tuple-element(u), index=0
    w = f32[] get-tuple-element(v), index=1
    z = f32[] custom-call(w), custom_call_target="evaluator_test.b"
    o = f32[] get-tuple-element(t), index=0
    ROOT r = (f32[], f32[], f32[]) tuple(z, o, w)
  })",
                {3, 4}),
            (std::vector<float>{8, 3, 4}));
}

TEST(Evaluator, NamesWhatFailed) {
  auto failing = compiled(R"(ENTRY e {
    x = f32[] parameter(0)
    ROOT hot = f32[] custom-call(x), custom_call_target="evaluator_test.fails", api_version=API_VERSION_STATUS_RETURNING
  })");
  EXPECT_EQ(error_of([&] { run(*failing, {1}); }),
            "hlo: 'hot' (custom-call): 'evaluator_test.fails' failed: too hot");
  EXPECT_EQ(error_of([&] { run(*failing, {}); }), "hlo: expected 1 arguments for 'e', got 0");
  Shape wrong = Shape::array(ElementType::F32, {2});
  Value argument[] = {Value::zeros(&wrong)};
  EXPECT_EQ(error_of([&] { failing->run(argument); }),
            "hlo: expected argument 0 ('x') to be f32[], got f32[2]");
}

TEST(Evaluator, RunsInManyThreadsAtOnce) {
  auto shared = compiled(R"(ENTRY e {
    x = f32[] parameter(0)
    c = f32[] constant(7)
    a = f32[] custom-call(x), custom_call_target="evaluator_test.add_in_place", output_to_operand_aliasing={{}: (0, {})}
    b = f32[] custom-call(a), custom_call_target="evaluator_test.add_in_place", output_to_operand_aliasing={{}: (0, {})}
    ROOT r = (f32[], f32[], f32[]) tuple(b, c, x)
  })");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        auto start = static_cast<float>(1000 * t + i);
        if (run(*shared, {start}) != std::vector<float>{start + 2, 7, start}) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Value, IsWrittenOnlyWhereItIsAlone) {
  Shape shape = Shape::array(ElementType::S32, {2});
  Value a = Value::zeros(&shape);
  EXPECT_TRUE(a.unique());
  Value b = a;
  EXPECT_FALSE(a.unique());
  Value c = Value::writable(b);
  EXPECT_NE(c.data(), a.data());
  c.values<int32_t>()[0] = 1;
  EXPECT_EQ(a.values<int32_t>()[0], 0);
  b = Value();
  void* data = a.data();
  Value d = Value::writable(std::move(a));
  EXPECT_EQ(d.data(), data);

  Shape column = Shape::array(ElementType::S32, {2, 1});
  Value e = Value::reshaped(d, &column);  // shared, so the memory is not its own
  EXPECT_EQ(e.data(), data);
  EXPECT_FALSE(e.unique());
  Value f = Value::reshaped(std::move(c), &column);
  EXPECT_TRUE(f.unique());

  int released = 0;
  int32_t numbers[] = {5, 6};
  {
    Value g =
        Value::view(&shape, numbers, [](void* count) { ++*static_cast<int*>(count); }, &released);
    EXPECT_FALSE(g.unique());
    Value h = Value::reshaped(g, &column);
    EXPECT_EQ(h.to_literal().to_string(), "{ {5}, {6} }");
  }
  EXPECT_EQ(released, 1);
}

}  // namespace
