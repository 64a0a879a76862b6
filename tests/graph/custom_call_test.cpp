// Custom calls on the host: conventions, tuples, layouts, aliasing, status, effects, the registry.
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/custom_call.h"
#include "lamella/graph/custom_call/registry.h"
#include "lamella/graph/execute/executor.h"
#include "lamella/graph/hlo/module.h"

namespace {

using namespace lamella::hlo;

// ---- Running texts ----

// A module whose entry computation has these lines.
std::unique_ptr<Executable> compile(const std::string& lines, const std::string& header = "",
                                    const std::string& platform = "Host") {
  std::string text = "HloModule m" + header + "\nENTRY main {\n" + lines + "\n}\n";
  CompileOptions options;
  options.platform = platform;
  return make_evaluator(parse_module(text), options);
}

Value floats(const Shape* shape, const std::vector<float>& values) {
  Value value = Value::uninitialized(shape);
  EXPECT_EQ(value.bytes(), values.size() * sizeof(float));
  std::copy(values.begin(), values.end(), value.values<float>().begin());
  return value;
}
// Runs with arrays of f32 as arguments.
Value run(const Executable& executable, const std::vector<std::vector<float>>& arguments) {
  std::vector<Value> values;
  const auto& parameters = executable.module().entry->parameters;
  for (size_t i = 0; i < arguments.size(); ++i) {
    values.push_back(floats(parameters[i]->shape, arguments[i]));
  }
  return executable.run(values);
}
std::vector<float> numbers(const Value& value) {
  auto span = value.values<float>();
  return {span.begin(), span.end()};
}
std::string error_of(const std::string& lines,
                     const std::vector<std::vector<float>>& arguments = {},
                     const std::string& platform = "Host") {
  try {
    auto executable = compile(lines, "", platform);
    run(*executable, arguments);
  } catch (const lamella::Error& e) {
    return e.what();
  }
  return "none";
}
using Floats = std::vector<float>;

// ---- Conventions ----

void add_128(void* out, const void** in) {
  auto* a = static_cast<float*>(out);
  auto* b = static_cast<const float*>(in[0]);
  auto* c = static_cast<const float*>(in[1]);
  for (int i = 0; i < 2048; ++i) a[i] = b[i % 128] + c[i];
}
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(add_128, "Host");

TEST(CustomCall, CallsAFunctionOfTheHost) {
  auto executable = compile(
      "  b = f32[128] parameter(0)\n  c = f32[2048] parameter(1)\n"
      "  ROOT r = f32[2048] custom-call(b, c), custom_call_target=\"add_128\"");
  Floats b(128), c(2048), expected(2048);
  for (size_t i = 0; i < 128; ++i) b[i] = static_cast<float>(i);
  for (size_t i = 0; i < 2048; ++i) c[i] = 0.5f * static_cast<float>(i);
  for (size_t i = 0; i < 2048; ++i) expected[i] = b[i % 128] + c[i];
  EXPECT_EQ(numbers(run(*executable, {b, c})), expected);
}

void positive(void* out, const void** in, XlaCustomCallStatus* status) {
  float x = *static_cast<const float*>(in[0]);
  if (x == 0) {
    XlaCustomCallStatusSetFailure(status, "zero, and what is cut off", 4);
    return;
  }
  if (x < 0) {
    const char* message = "expected a positive number";
    XlaCustomCallStatusSetFailure(status, message, strlen(message));
    return;
  }
  if (x > 100) {
    XlaCustomCallStatusSetFailure(status, "large", 5);
    XlaCustomCallStatusSetSuccess(status);
  }
  *static_cast<float*>(out) = 1 / x;
}
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(positive, "Host");

TEST(CustomCall, AStatusEndsTheComputation) {
  std::string lines =
      "  x = f32[] parameter(0)\n"
      "  ROOT r = f32[] custom-call(x), custom_call_target=\"positive\", "
      "api_version=API_VERSION_STATUS_RETURNING";
  auto executable = compile(lines);
  EXPECT_EQ(numbers(run(*executable, {{4}})), Floats{0.25f});
  EXPECT_EQ(numbers(run(*executable, {{200}})), Floats{1 / 200.f});
  EXPECT_EQ(error_of(lines, {{-1}}),
            "hlo: 'r' (custom-call): 'positive' failed: expected a positive number");
  EXPECT_EQ(error_of(lines, {{0}}), "hlo: 'r' (custom-call): 'positive' failed: zero");
  // And runs again.
  EXPECT_EQ(numbers(run(*executable, {{2}})), Floats{0.5f});
}

std::vector<std::string> log;
void note(void* out, const void** in, const char* opaque, size_t opaque_len,
          XlaCustomCallStatus* status) {
  std::string text(opaque, opaque_len);
  log.push_back(text);
  if (text == "stop") XlaCustomCallStatusSetFailure(status, "stopped", 7);
  if (out != nullptr) *static_cast<float*>(out) = static_cast<float>(opaque_len);
}
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(note, "Host");

// A call of `note` for its effect.
std::string noting(const std::string& name, const std::string& text, const std::string& more = "") {
  return "  " + name +
         " = () custom-call(), custom_call_target=\"note\", "
         "custom_call_has_side_effect=true, api_version=API_VERSION_STATUS_RETURNING_UNIFIED, "
         "backend_config=\"" +
         text + "\"" + more + "\n";
}

TEST(CustomCall, OpaqueGoesToTheUnifiedConvention) {
  log.clear();
  auto executable = compile(
      "  ROOT r = f32[] custom-call(), custom_call_target=\"note\", "
      "api_version=API_VERSION_STATUS_RETURNING_UNIFIED, backend_config=\"a\\n\\\"b\\\"\\000c\"");
  EXPECT_EQ(numbers(run(*executable, {})), Floats{7});
  EXPECT_EQ(log, std::vector<std::string>{std::string("a\n\"b\"\0c", 7)});
}

TEST(CustomCall, EffectsHappenOnceAndInOrder) {
  log.clear();
  auto executable = compile(noting("a", "first") +
                            "  unused = f32[] custom-call(), custom_call_target=\"note\", "
                            "api_version=API_VERSION_STATUS_RETURNING_UNIFIED\n" +
                            noting("b", "second", ", schedule=SCHEDULE_EARLIEST") +
                            "  ROOT r = f32[] constant(3)\n" + noting("c", "third"));
  EXPECT_EQ(numbers(run(*executable, {})), Floats{3});
  EXPECT_EQ(log, (std::vector<std::string>{"first", "second", "third"}));
  EXPECT_EQ(log.size(), 3u);
  run(*executable, {});
  EXPECT_EQ(log.size(), 6u);
}

TEST(CustomCall, NothingHappensAfterAFailure) {
  log.clear();
  std::string lines = noting("a", "go") + noting("b", "stop") + noting("c", "never") +
                      "  ROOT r = f32[] constant(3)";
  EXPECT_EQ(error_of(lines), "hlo: 'b' (custom-call): 'note' failed: stopped");
  EXPECT_EQ(log, (std::vector<std::string>{"go", "stop"}));
}

void throwing(void*, const void**) { throw std::runtime_error("out of luck"); }
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(throwing, "Host");

TEST(CustomCall, AnExceptionIsAnErrorOfTheInstruction) {
  EXPECT_EQ(error_of("  ROOT r = f32[] custom-call(), custom_call_target=\"throwing\""),
            "hlo: 'r' (custom-call): 'throwing' failed: out of luck");
}

// ---- Tuples ----

// Operand: (f32[2], (f32[3], f32[1]), token[]), result: (f32[2], (f32[4])), the last a temporary.
void of_tuples(void* out, const void** in) {
  auto* const* operand = static_cast<void* const*>(in[0]);
  auto* const* inner = static_cast<void* const*>(operand[1]);
  auto* a = static_cast<const float*>(operand[0]);
  auto* b = static_cast<const float*>(inner[0]);
  auto* c = static_cast<const float*>(inner[1]);
  EXPECT_EQ(operand[2], nullptr);
  auto* const* results = static_cast<void* const*>(out);
  auto* first = static_cast<float*>(results[0]);
  auto* temporary = static_cast<float*>(static_cast<void* const*>(results[1])[0]);
  for (int i = 0; i < 4; ++i) temporary[i] = c[0];
  for (int i = 0; i < 2; ++i) first[i] = a[i] * 100 + b[i + 1] + temporary[i + 2];
}
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(of_tuples, "Host");

TEST(CustomCall, TuplesAreArraysOfPointers) {
  auto executable = compile(
      "  a = f32[2] parameter(0)\n  b = f32[3] parameter(1)\n  c = f32[1] parameter(2)\n"
      "  k = token[] after-all()\n  bc = (f32[3], f32[1]) tuple(b, c)\n"
      "  t = (f32[2], (f32[3], f32[1]), token[]) tuple(a, bc, k)\n"
      "  r = (f32[2], (f32[4])) custom-call(t), custom_call_target=\"of_tuples\"\n"
      "  ROOT first = f32[2] get-tuple-element(r), index=0");
  EXPECT_EQ(numbers(run(*executable, {{1, 2}, {3, 4, 5}, {0.5f}})), (Floats{104.5f, 205.5f}));
}

// ---- Layouts ----

// in: f32[2,3] column-major; out: the transposed matrix's elements as they lie, column-major.
void copy_6(void* out, const void** in) { std::memcpy(out, in[0], 6 * sizeof(float)); }
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(copy_6, "Host");

TEST(CustomCall, BuffersHaveTheLayoutsThatTheInstructionAsksFor) {
  struct Row {
    const char* result;
    const char* constraint;
    Floats expected;
  };
  // Elements 1 to 6 of a 2 x 3 matrix come out as they lie.
  Row rows[] = {{"f32[6]", "f32[2,3]{1,0}", {1, 2, 3, 4, 5, 6}},
                {"f32[6]", "f32[2,3]{0,1}", {1, 4, 2, 5, 3, 6}},
                {"f32[2,3]{0,1}", "f32[2,3]{0,1}", {1, 2, 3, 4, 5, 6}},
                {"f32[2,3]{0,1}", "f32[2,3]{1,0}", {1, 3, 5, 2, 4, 6}},
                {"f32[3,2]{0,1}", "f32[2,3]{1,0}", {1, 4, 2, 5, 3, 6}},
                {"f32[1,6]{0,1}", "f32[2,3]{1,0}", {1, 2, 3, 4, 5, 6}}};
  for (const Row& row : rows) {
    auto executable =
        compile(std::string("  x = f32[2,3] parameter(0)\n  ROOT r = ") + row.result +
                " custom-call(x), custom_call_target=\"copy_6\", operand_layout_constraints={" +
                row.constraint + "}");
    EXPECT_EQ(numbers(run(*executable, {{1, 2, 3, 4, 5, 6}})), row.expected)
        << row.result << " " << row.constraint;
  }
}

TEST(CustomCall, WithoutConstraintsLayoutsHoldWhereTheTextIsFinal) {
  std::string lines =
      "  x = f32[2,3]{0,1} parameter(0)\n"
      "  ROOT r = f32[6] custom-call(x), custom_call_target=\"copy_6\"";
  EXPECT_EQ(numbers(run(*compile(lines), {{1, 2, 3, 4, 5, 6}})), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(numbers(run(*compile(lines, ", is_scheduled=true"), {{1, 2, 3, 4, 5, 6}})),
            (Floats{1, 4, 2, 5, 3, 6}));
  lines =
      "  x = f32[6] parameter(0)\n"
      "  ROOT r = f32[2,3]{0,1} custom-call(x), custom_call_target=\"copy_6\"";
  EXPECT_EQ(numbers(run(*compile(lines), {{1, 2, 3, 4, 5, 6}})), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(numbers(run(*compile(lines, ", is_scheduled=true"), {{1, 2, 3, 4, 5, 6}})),
            (Floats{1, 3, 5, 2, 4, 6}));
}

// All element sizes, three dimensions, against plain index arithmetic.
void copy_bytes(void* out, const void** in) {
  auto* size = static_cast<const int64_t*>(in[1]);
  std::memcpy(out, in[0], static_cast<size_t>(*size));
}
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(copy_bytes, "Host");

template <class T>
void check_three_dimensions(const char* type) {
  auto executable =
      compile(std::string("  x = ") + type + "[2,3,4] parameter(0)\n  n = s64[] parameter(1)\n" +
              "  ROOT r = " + type + "[24] custom-call(x, n), custom_call_target=\"copy_bytes\", " +
              "operand_layout_constraints={" + type + "[2,3,4]{0,2,1}, s64[]}");
  const auto& parameters = executable->module().entry->parameters;
  std::vector<Value> arguments = {Value::uninitialized(parameters[0]->shape),
                                  Value::uninitialized(parameters[1]->shape)};
  for (int i = 0; i < 24; ++i) arguments[0].values<T>()[static_cast<size_t>(i)] = static_cast<T>(i);
  arguments[1].values<int64_t>()[0] = 24 * static_cast<int64_t>(sizeof(T));
  Value result = executable->run(arguments);
  size_t at = 0;
  for (int b = 0; b < 3; ++b) {
    for (int c = 0; c < 4; ++c) {
      for (int a = 0; a < 2; ++a) {
        EXPECT_EQ(result.values<T>()[at++], static_cast<T>(a * 12 + b * 4 + c)) << type;
      }
    }
  }
}

TEST(CustomCall, LayoutsOfElementsOfEverySize) {
  check_three_dimensions<uint8_t>("u8");
  check_three_dimensions<int16_t>("s16");
  check_three_dimensions<float>("f32");
  check_three_dimensions<double>("f64");
  check_three_dimensions<std::complex<double>>("c128");
}

// ---- Aliasing ----

const void* seen_in;
void* seen_out;
// Adds one in place; the result lies in the operand's memory.
void increment(void* out, const void** in) {
  seen_in = in[0];
  seen_out = out;
  EXPECT_EQ(in[0], out);
  for (int i = 0; i < 2; ++i) static_cast<float*>(out)[i] += 1;
}
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(increment, "Host");

TEST(CustomCall, AnAliasedOutputLiesInItsOperand) {
  auto executable = compile(
      "  x = f32[2] parameter(0)\n"
      "  a = f32[2] custom-call(x), custom_call_target=\"increment\", "
      "output_to_operand_aliasing={{}: (0, {})}\n"
      "  ROOT b = f32[2] custom-call(a), custom_call_target=\"increment\", "
      "output_to_operand_aliasing={{}: (0, {})}");
  Value argument = floats(executable->module().entry->parameters[0]->shape, {1, 2});
  Value result = executable->run(std::span(&argument, 1));
  EXPECT_EQ(numbers(result), (Floats{3, 4}));
  // The caller's array is not written; between the two calls nothing was copied.
  EXPECT_EQ(numbers(argument), (Floats{1, 2}));
  EXPECT_NE(seen_out, argument.data());
  EXPECT_EQ(result.data(), seen_in);
}

TEST(CustomCall, AnOperandThatIsUsedLaterIsCopiedFirst) {
  auto executable = compile(
      "  x = f32[2] parameter(0)\n"
      "  a = f32[2] custom-call(x), custom_call_target=\"increment\", "
      "output_to_operand_aliasing={{}: (0, {})}\n"
      "  b = f32[2] custom-call(a), custom_call_target=\"increment\", "
      "output_to_operand_aliasing={{}: (0, {})}\n"
      "  ROOT t = (f32[2], f32[2], f32[2]) tuple(x, a, b)");
  Value result = run(*executable, {{1, 2}});
  EXPECT_EQ(numbers(result.element(0)), (Floats{1, 2}));
  EXPECT_EQ(numbers(result.element(1)), (Floats{2, 3}));
  EXPECT_EQ(numbers(result.element(2)), (Floats{3, 4}));
}

// (f32[2], (f32[2], f32[1])) -> (f32[1], f32[2]): output 1 lies in element {1,0} of the operand.
void increment_inside(void* out, const void** in) {
  auto* const* operand = static_cast<void* const*>(in[0]);
  auto* const* inner = static_cast<void* const*>(operand[1]);
  auto* const* results = static_cast<void* const*>(out);
  EXPECT_EQ(inner[0], results[1]);
  EXPECT_NE(operand[0], results[0]);
  static_cast<float*>(results[0])[0] = static_cast<const float*>(inner[1])[0];
  for (int i = 0; i < 2; ++i) static_cast<float*>(results[1])[i] += 1;
}
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(increment_inside, "Host");

TEST(CustomCall, AliasingReachesIntoTuples) {
  auto executable = compile(
      "  a = f32[2] parameter(0)\n  b = f32[2] parameter(1)\n  c = f32[1] parameter(2)\n"
      "  bc = (f32[2], f32[1]) tuple(b, c)\n  t = (f32[2], (f32[2], f32[1])) tuple(a, bc)\n"
      "  r = (f32[1], f32[2]) custom-call(t), custom_call_target=\"increment_inside\", "
      "output_to_operand_aliasing={{1}: (0, {1, 0})}\n"
      "  ROOT all = ((f32[1], f32[2]), f32[2]) tuple(r, b)");
  Value result = run(*executable, {{1, 2}, {3, 4}, {5}});
  EXPECT_EQ(numbers(result.element(0).element(0)), (Floats{5}));
  EXPECT_EQ(numbers(result.element(0).element(1)), (Floats{4, 5}));
  EXPECT_EQ(numbers(result.element(1)), (Floats{3, 4}));
}

void increment_pair(void* out, const void** in) {
  auto* const* operand = static_cast<void* const*>(in[0]);
  auto* const* results = static_cast<void* const*>(out);
  for (int n = 0; n < 2; ++n) {
    EXPECT_EQ(operand[n], results[n]);
    *static_cast<float*>(results[n]) += 1;
  }
}
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(increment_pair, "Host");

TEST(CustomCall, AliasingOfAWholeTuple) {
  auto executable = compile(
      "  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  t = (f32[], f32[]) tuple(a, b)\n"
      "  ROOT r = (f32[], f32[]) custom-call(t), custom_call_target=\"increment_pair\", "
      "output_to_operand_aliasing={{}: (0, {})}");
  Value result = run(*executable, {{1}, {2}});
  EXPECT_EQ(numbers(result.element(0)), Floats{2});
  EXPECT_EQ(numbers(result.element(1)), Floats{3});
}

TEST(CustomCall, AliasingOfAnotherLayout) {
  // The operand is handed over column-major, and so is the result in its memory.
  auto executable = compile(
      "  x = f32[2,2] parameter(0)\n"
      "  ROOT r = f32[2,2]{0,1} custom-call(x), custom_call_target=\"increment\", "
      "operand_layout_constraints={f32[2,2]{0,1}}, output_to_operand_aliasing={{}: (0, {})}");
  EXPECT_EQ(numbers(run(*executable, {{1, 2, 3, 4}})), (Floats{2, 2, 4, 4}));
}

// ---- Sizes ----

void nothing(void*, const void**) {}
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(nothing, "Host");

TEST(CustomCall, EmptyArraysAndTokens) {
  auto executable = compile(
      "  x = f32[0,3] parameter(0)\n  k = token[] after-all()\n"
      "  r = (f32[3,0]{0,1}, token[], ()) custom-call(x, k), custom_call_target=\"nothing\"\n"
      "  ROOT e = f32[3,0] get-tuple-element(r), index=0");
  EXPECT_EQ(run(*executable, {{}}).bytes(), 0u);
}

void sum_of_20(void* out, const void** in) {
  float sum = 0;
  for (int i = 0; i < 20; ++i) sum += *static_cast<const float*>(in[i]);
  *static_cast<float*>(out) = sum;
}
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(sum_of_20, "Host");

TEST(CustomCall, ManyOperands) {
  std::string lines = "  x = f32[] parameter(0)\n  ROOT r = f32[] custom-call(x";
  for (int i = 1; i < 20; ++i) lines += ", x";
  auto executable = compile(lines + "), custom_call_target=\"sum_of_20\"");
  EXPECT_EQ(numbers(run(*executable, {{2}})), Floats{40});
}

// ---- What does not fit ----

TEST(CustomCall, WhatDoesNotFitIsSaidWhenTheModuleIsCompiled) {
  std::string x = "  x = f32[2] parameter(0)\n  ROOT r = ";
  std::string begin = "hlo: 'r' (custom-call): ";
  const std::pair<std::string, std::string> rows[] = {
      {"f32[2] custom-call(x), custom_call_target=\"incremnt\"",
       "expected a target that is registered for Host, got 'incremnt'; near names: 'increment'"},
      {"f32[2] custom-call(x), custom_call_target=\"aten::ad.Tensor\"",
       "expected a target that is registered for Host, got 'aten::ad.Tensor'; near names: "
       "'aten::add.Tensor', 'aten::add_.Tensor', 'aten::eq.Tensor'"},
      {"f32[2] custom-call(x), custom_call_target=\"aten::softmx\"",
       "expected a target that is registered for Host, got 'aten::softmx'; near names: "
       "'aten::softmax.int', 'aten::softmax.int_out', 'aten::_softmax'"},
      {"f32[2] custom-call(x), custom_call_target=\"qqqqqqqqq\"",
       "expected a target that is registered for Host, got 'qqqqqqqqq'"},
      {"f32[2] custom-call(x), custom_call_target=\"increment\", "
       "api_version=API_VERSION_TYPED_FFI",
       "expected api_version to be other than API_VERSION_TYPED_FFI, since 'increment' is "
       "registered for Host as a plain function, got API_VERSION_TYPED_FFI"},
      {"f32[2] custom-call(x), custom_call_target=\"increment\", schedule=SCHEDULE_SOON",
       "expected schedule to be SCHEDULE_NONE, SCHEDULE_EARLIEST or SCHEDULE_LATEST, got "
       "'SCHEDULE_SOON'"},
      {"f32[2] custom-call(x), custom_call_target=\"increment\", api_version=API_VERSION_NEW",
       "expected api_version to be API_VERSION_ORIGINAL, API_VERSION_STATUS_RETURNING, "
       "API_VERSION_STATUS_RETURNING_UNIFIED or API_VERSION_TYPED_FFI, got 'API_VERSION_NEW'"},
      {"f32[2] custom-call(x), custom_call_target=\"increment\", "
       "operand_layout_constraints={f32[3]{0}}",
       "expected operand_layout_constraints to give operand 0 as f32[2], got f32[3]"},
      {"f32[2] custom-call(x), custom_call_target=\"increment\", "
       "operand_layout_constraints={f32[2]{0}, f32[2]{0}}",
       "expected operand_layout_constraints for 1 operands, got 2"},
      {"f32[2] custom-call(x), custom_call_target=\"increment\", "
       "output_to_operand_aliasing={{}: (1, {})}",
       "expected output_to_operand_aliasing to name an operand below 1, got 1"},
      {"f32[2] custom-call(x), custom_call_target=\"increment\", "
       "output_to_operand_aliasing={{1}: (0, {})}",
       "expected output_to_operand_aliasing to name an element of f32[2], got {1}"},
      {"f32[3] custom-call(x), custom_call_target=\"increment\", "
       "output_to_operand_aliasing={{}: (0, {})}",
       "expected output_to_operand_aliasing to join equal shapes, got f32[3] and f32[2]"},
      {"(f32[2], f32[2]) custom-call(x), custom_call_target=\"increment\", "
       "output_to_operand_aliasing={{0}: (0, {}), {1}: (0, {})}",
       "expected output_to_operand_aliasing to name each operand once, got 0, {} again"},
  };
  for (const auto& [line, message] : rows) {
    EXPECT_EQ(error_of(x + line, {{1, 2}}), begin + message) << line;
  }
}

#ifdef LAMELLA_TEST_LAPACK
TEST(CustomCall, NamesOfLapackAreNearNamesToo) {
  EXPECT_EQ(error_of("  ROOT r = f32[2] custom-call(), custom_call_target=\"lapak_spotrf_ff\""),
            "hlo: 'r' (custom-call): expected a target that is registered for Host, got "
            "'lapak_spotrf_ff'; near names: 'lapack_spotrf_ffi', 'lapack_cpotrf_ffi', "
            "'lapack_dpotrf_ffi'");
}
#endif

// ---- The registry ----

void one(void* out, const void**) { *static_cast<float*>(out) = 1; }
void two(void* out, const void**) { *static_cast<float*>(out) = 2; }
lamella_status add(const char* name, void (*f)(void*, const void**), const char* platform,
                   const char* file = nullptr, uint32_t line = 0) {
  return lamella_register_custom_call_target(name, reinterpret_cast<void*>(f), platform, file,
                                             line);
}

TEST(CustomCallRegistry, RegistersReplacesAndRemoves) {
  std::string call = "  ROOT r = f32[] custom-call(), custom_call_target=\"number\"";
  EXPECT_EQ(add("number", one, "cpu", "a.cc", 3), LAMELLA_OK);
  auto executable = compile(call);
  EXPECT_EQ(numbers(run(*executable, {})), Floats{1});
  // The same again is counted; another one is refused.
  EXPECT_EQ(add("number", one, "Host", "b.cc", 4), LAMELLA_OK);
  EXPECT_EQ(add("number", two, "Host", "c.cc", 5), LAMELLA_ERROR);
  EXPECT_STREQ(lamella_error_text(),
               "hlo: expected the custom-call target 'number' to be registered for Host once; "
               "registered at a.cc:3 and, another function, at c.cc:5");
  Target replacement;
  replacement.name = "number";
  replacement.platform = "Host";
  replacement.function = reinterpret_cast<void*>(two);
  replace_target(replacement);
  // What was compiled keeps what it found.
  EXPECT_EQ(numbers(run(*executable, {})), Floats{1});
  EXPECT_EQ(numbers(run(*compile(call), {})), Floats{2});
  EXPECT_EQ(lamella_remove_custom_call_target("number", reinterpret_cast<void*>(one), "Host"),
            LAMELLA_ERROR);
  EXPECT_STREQ(lamella_error_text(),
               "hlo: expected the custom-call target 'number' to be registered for Host, got none "
               "of this function");
  EXPECT_EQ(lamella_remove_custom_call_target("number", nullptr, "Host"), LAMELLA_OK);
  EXPECT_EQ(find_target("number", "Host", TargetKind::Function), nullptr);
  EXPECT_EQ(numbers(run(*executable, {})), Floats{1});
  EXPECT_EQ(lamella_remove_custom_call_target("number", nullptr, "Host"), LAMELLA_ERROR);
}

TEST(CustomCallRegistry, CountsEqualRegistrations) {
  EXPECT_EQ(add("counted", one, "Host"), LAMELLA_OK);
  EXPECT_EQ(add("counted", one, "Host"), LAMELLA_OK);
  EXPECT_EQ(lamella_remove_custom_call_target("counted", reinterpret_cast<void*>(one), "Host"),
            LAMELLA_OK);
  EXPECT_NE(find_target("counted", "Host", TargetKind::Function), nullptr);
  EXPECT_EQ(lamella_remove_custom_call_target("counted", reinterpret_cast<void*>(one), "Host"),
            LAMELLA_OK);
  EXPECT_EQ(find_target("counted", "Host", TargetKind::Function), nullptr);
}

TEST(CustomCallRegistry, PlatformsAreApart) {
  EXPECT_EQ(add("of_cuda", one, "gpu"), LAMELLA_OK);
  ASSERT_NE(find_target("of_cuda", "CUDA", TargetKind::Function), nullptr);
  EXPECT_EQ(error_of("  ROOT r = f32[] custom-call(), custom_call_target=\"of_cuda\""),
            "hlo: 'r' (custom-call): expected a target that is registered for Host, got 'of_cuda'; "
            "it is registered for CUDA");
  EXPECT_EQ(lamella_remove_custom_call_target("of_cuda", nullptr, "CUDA"), LAMELLA_OK);
}

TEST(CustomCallRegistry, BuiltInTargetsStandBehindTheUsers) {
  Target built_in;
  built_in.name = "behind";
  built_in.platform = "Host";
  built_in.function = reinterpret_cast<void*>(one);
  built_in.built_in = true;
  register_target(built_in);
  EXPECT_EQ(add("behind", two, "Host"), LAMELLA_OK);
  EXPECT_EQ(find_target("behind", "Host", TargetKind::Function)->function,
            reinterpret_cast<void*>(two));
  EXPECT_EQ(lamella_remove_custom_call_target("behind", nullptr, "Host"), LAMELLA_OK);
  EXPECT_EQ(find_target("behind", "Host", TargetKind::Function)->function,
            reinterpret_cast<void*>(one));
}

TEST(CustomCallRegistry, RefusesWhatIsNoTarget) {
  EXPECT_EQ(add("", one, "Host"), LAMELLA_ERROR);
  EXPECT_STREQ(lamella_error_text(), "hlo: expected a custom-call target to have a name, got ''");
  EXPECT_EQ(add("null", nullptr, "Host"), LAMELLA_ERROR);
  EXPECT_STREQ(lamella_error_text(),
               "hlo: expected the custom-call target 'null' to be a function, got NULL");
}

TEST(CustomCallRegistry, IsSafeAmongThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      std::string own = "thread_" + std::to_string(t);
      for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(add(own.c_str(), one, "Host"), LAMELLA_OK);
        EXPECT_EQ(add("shared", one, "Host"), LAMELLA_OK);
        EXPECT_NE(find_target("shared", "Host", TargetKind::Function), nullptr);
        list_targets();
        EXPECT_EQ(lamella_remove_custom_call_target(own.c_str(), nullptr, "Host"), LAMELLA_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lamella_remove_custom_call_target("shared", nullptr, "Host"), LAMELLA_OK);
}

}  // namespace
