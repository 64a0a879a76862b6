// The custom-call guide's programs for the host, in XLA's spelling.
#include "tensorflow/compiler/xla/client/xla_builder.h"
#include "tensorflow/compiler/xla/service/custom_call_status.h"
#include "tensorflow/compiler/xla/service/custom_call_target_registry.h"
#include "tests/seeds/custom_call_run.h"

// ---- A call on the CPU: A[i] = B[i % 128] + C[i] ----

namespace first {

void do_it(xla::XlaBuilder& b) {
  xla::XlaOp param0 = xla::Parameter(&b, 0, xla::ShapeUtil::MakeShape(xla::F32, {128}), "p0");
  xla::XlaOp param1 = xla::Parameter(&b, 1, xla::ShapeUtil::MakeShape(xla::F32, {2048}), "p1");
  xla::XlaOp custom_call = xla::CustomCall(&b, "do_custom_call", /*operands=*/{param0, param1},
                                           /*shape=*/xla::ShapeUtil::MakeShape(xla::F32, {2048}));
  EXPECT_TRUE(custom_call.valid());
}

void do_custom_call(void* out, const void** in) {
  float* out_buf = reinterpret_cast<float*>(out);
  const float* in0 = reinterpret_cast<const float*>(in[0]);
  const float* in1 = reinterpret_cast<const float*>(in[1]);
  for (int i = 0; i < 2048; ++i) {
    out_buf[i] = in0[i % 128] + in1[i];
  }
}
XLA_REGISTER_CUSTOM_CALL_TARGET(do_custom_call, "Host");

TEST(CustomCallGuide, ACallOnTheHost) {
  xla::XlaBuilder b("do_it");
  do_it(b);
  Example example;
  EXPECT_EQ(numbers(run(b, {example.b, example.c})), example.a);
}

}  // namespace first

// Sizes as operands, which is fine on the CPU.
namespace sizes {

void add_of_any_size(void* out, const void** in) {
  const float* in0 = reinterpret_cast<const float*>(in[0]);
  const float* in1 = reinterpret_cast<const float*>(in[1]);
  const int64_t* dimensions = reinterpret_cast<const int64_t*>(in[2]);
  for (int64_t i = 0; i < dimensions[1]; ++i) {
    reinterpret_cast<float*>(out)[i] = in0[i % dimensions[0]] + in1[i];
  }
}
XLA_REGISTER_CUSTOM_CALL_TARGET(add_of_any_size, "Host");

TEST(CustomCallGuide, DimensionsAsOperands) {
  xla::XlaBuilder b("sizes");
  xla::XlaOp x = xla::Parameter(&b, 0, xla::ShapeUtil::MakeShape(xla::F32, {2}), "x");
  xla::XlaOp y = xla::Parameter(&b, 1, xla::ShapeUtil::MakeShape(xla::F32, {4}), "y");
  xla::XlaOp dimensions = xla::ConstantR1<int64_t>(&b, {2, 4});
  xla::CustomCall(&b, "add_of_any_size", {x, y, dimensions},
                  xla::ShapeUtil::MakeShape(xla::F32, {4}));
  EXPECT_EQ(numbers(run(b, {{1, 2}, {10, 20, 30, 40}})), (Floats{11, 22, 31, 42}));
}

}  // namespace sizes

// ---- Signalling an error ----

namespace status {

void call_with_status(void* out, const void** in, XlaCustomCallStatus* status) {
  float x = *reinterpret_cast<const float*>(in[0]);
  bool bad_condition = x < 0;
  if (bad_condition) {
    const char* error_message = "An error occurred";
    XlaCustomCallStatusSetFailure(status, error_message, strlen(error_message));
    return;
  }
  if (x == 0) {
    // Undone again: the last word counts.
    XlaCustomCallStatusSetFailure(status, "zero", 4);
    XlaCustomCallStatusSetSuccess(status);
  }
  *reinterpret_cast<float*>(out) = x + 1;
}
XLA_REGISTER_CUSTOM_CALL_TARGET(call_with_status, "Host");

void with_status(xla::XlaBuilder& b) {
  using xla::API_VERSION_STATUS_RETURNING;
  using xla::F32;
  xla::XlaOp param0 = xla::Parameter(&b, 0, xla::ShapeUtil::MakeShape(F32, {1}), "p0");
  std::string opaque = "...";
  xla::XlaOp call = xla::CustomCall(&b, "call_with_status", /*operands=*/{param0},
                                    /*output_shape=*/xla::ShapeUtil::MakeShape(F32, {1}), opaque,
                                    /*has_side_effect=*/false,
                                    /*output_operand_aliasing=*/{}, /*literal=*/nullptr,
                                    /*schedule=*/xla::CustomCallSchedule::SCHEDULE_NONE,
                                    /*api_version=*/API_VERSION_STATUS_RETURNING);
  xla::Neg(call);
}

TEST(CustomCallGuide, SuccessIsTheDefault) {
  xla::XlaBuilder b("status");
  with_status(b);
  EXPECT_EQ(numbers(run(b, {{1}})), Floats{-2});
  with_status(b);
  EXPECT_EQ(numbers(run(b, {{0}})), Floats{-1});
}

TEST(CustomCallGuide, AFailureEndsTheComputation) {
  xla::XlaBuilder b("status");
  with_status(b);
  EXPECT_EQ(error_of(b, {{-1}}),
            "hlo: 'custom-call.2' (custom-call): 'call_with_status' failed: An error occurred");
}

void that_cannot_fail(void* out, const void** in, xla::XlaCustomCallStatus*) {
  *reinterpret_cast<float*>(out) = 2 * *reinterpret_cast<const float*>(in[0]);
}
XLA_REGISTER_CUSTOM_CALL_TARGET(that_cannot_fail, "Host");

TEST(CustomCallGuide, TheStatusMayBeIgnored) {
  xla::XlaBuilder b("status");
  xla::XlaOp x = xla::Parameter(&b, 0, xla::ShapeUtil::MakeShape(xla::F32, {1}), "x");
  xla::CustomCall(&b, "that_cannot_fail", {x}, xla::ShapeUtil::MakeShape(xla::F32, {1}), "", false,
                  {}, nullptr, xla::SCHEDULE_NONE, xla::API_VERSION_STATUS_RETURNING);
  EXPECT_EQ(numbers(run(b, {{4}})), Floats{8});
}

}  // namespace status

// ---- Tuples, and tuple outputs as temporary buffers ----

namespace tuples {

using xla::F32;
using xla::Shape;
using xla::ShapeUtil;

// The same arrays, nested as the operand is.
struct Leaves {
  const float *subbuf0, *subbuf1, *subbuf2, *subbuf3;
};
Leaves leaves_of(const void* p0) {
  auto table = reinterpret_cast<const void* const*>(p0);
  auto subtuple = reinterpret_cast<const void* const*>(table[1]);
  return {reinterpret_cast<const float*>(table[0]), reinterpret_cast<const float*>(subtuple[0]),
          reinterpret_cast<const float*>(subtuple[1]), reinterpret_cast<const float*>(table[2])};
}

// Output 0: the operand's 480 numbers, then the sums of the four arrays. Output 1 is a temporary.
void do_tuple_call(void* out, const void** ins) {
  Leaves in = leaves_of(ins[0]);
  float* result = reinterpret_cast<float**>(out)[0];
  float* temporary = reinterpret_cast<float**>(out)[1];
  const float* arrays[] = {in.subbuf0, in.subbuf1, in.subbuf2, in.subbuf3};
  const int sizes[] = {32, 64, 128, 256};
  for (int n = 0; n < 1024; ++n) temporary[n] = 0;
  int at = 0;
  for (int n = 0; n < 4; ++n) {
    for (int i = 0; i < sizes[n]; ++i) {
      result[at++] = arrays[n][i];
      temporary[n] += arrays[n][i];
    }
  }
  for (int n = 0; at < 512; ++n) result[at++] = temporary[n];
}
XLA_REGISTER_CUSTOM_CALL_TARGET(do_tuple_call, "Host");

xla::XlaOp tuple_call(xla::XlaBuilder& b) {
  Shape p0_shape = ShapeUtil::MakeTuple({
      ShapeUtil::MakeShape(F32, {32}),
      ShapeUtil::MakeTuple({
          ShapeUtil::MakeShape(F32, {64}),
          ShapeUtil::MakeShape(F32, {128}),
      }),
      ShapeUtil::MakeShape(F32, {256}),
  });
  xla::XlaOp p0 = xla::Parameter(&b, 0, p0_shape, "p0");

  Shape out_shape = ShapeUtil::MakeTuple({
      ShapeUtil::MakeShape(F32, {512}),
      ShapeUtil::MakeShape(F32, {1024}),
  });
  return xla::CustomCall(&b, "do_tuple_call", /*operands=*/{p0}, out_shape);
}

TEST(CustomCallGuide, TuplesAreArraysOfPointersAndOutputsMayBeTemporary) {
  xla::XlaBuilder b("tuples");
  xla::GetTupleElement(tuple_call(b), 0);
  auto filled = [](size_t count, float value) { return literal(Floats(count, value)); };
  xla::Literal subtuple = xla::LiteralUtil::MakeTupleOwned(filled(64, 2), filled(128, 3));
  std::vector<xla::Literal> arguments;
  arguments.push_back(
      xla::LiteralUtil::MakeTupleOwned(filled(32, 1), std::move(subtuple), filled(256, 4)));
  Floats expected;
  for (auto [count, value] : {std::pair(32, 1), {64, 2}, {128, 3}, {256, 4}}) {
    expected.insert(expected.end(), static_cast<size_t>(count), static_cast<float>(value));
  }
  for (float sum : {32.f, 128.f, 384.f, 1024.f}) expected.push_back(sum);
  expected.resize(512, 0);
  EXPECT_EQ(numbers(run_with(b, arguments)), expected);
}

TEST(CustomCallGuide, InMemoryLayoutOfATuple) {
  // The guide's drawing of parameter 0, in valid C++.
  float* subbuf0 = new float[32];
  float* subbuf1 = new float[64];
  float* subbuf2 = new float[128];
  float* subbuf3 = new float[256];

  void** subtuple = new void*[2];
  subtuple[0] = subbuf1;
  subtuple[1] = subbuf2;

  void** p0 = new void*[3];
  p0[0] = subbuf0;
  p0[1] = subtuple;
  p0[2] = subbuf3;

  Leaves read = leaves_of(p0);
  EXPECT_EQ(read.subbuf0, subbuf0);
  EXPECT_EQ(read.subbuf1, subbuf1);
  EXPECT_EQ(read.subbuf2, subbuf2);
  EXPECT_EQ(read.subbuf3, subbuf3);
  for (float* buffer : {subbuf0, subbuf1, subbuf2, subbuf3}) delete[] buffer;
  delete[] subtuple;
  delete[] p0;
}

// A tuple need not be passed: its elements may be.
void sum_of_two(void* out, const void** in) {
  *reinterpret_cast<float*>(out) =
      *reinterpret_cast<const float*>(in[0]) + *reinterpret_cast<const float*>(in[1]);
}
XLA_REGISTER_CUSTOM_CALL_TARGET(sum_of_two, "Host");

TEST(CustomCallGuide, ATupleTakenApartBeforeTheCall) {
  xla::XlaBuilder b("apart");
  xla::XlaOp x = xla::Parameter(&b, 0, ShapeUtil::MakeShape(F32, {1}), "x");
  xla::XlaOp y = xla::Parameter(&b, 1, ShapeUtil::MakeShape(F32, {1}), "y");
  xla::XlaOp pair = xla::Tuple(&b, {x, y});
  xla::CustomCall(&b, "sum_of_two", {xla::GetTupleElement(pair, 0), xla::GetTupleElement(pair, 1)},
                  ShapeUtil::MakeShape(F32, {1}));
  EXPECT_EQ(numbers(run(b, {{1}, {2}})), Floats{3});
}

}  // namespace tuples

// ---- The other arguments of CustomCall ----

namespace arguments {

int times = 0;
void count(void* out, const void**) {
  *reinterpret_cast<float*>(out) = static_cast<float>(++times);
}
XLA_REGISTER_CUSTOM_CALL_TARGET(count, "Host");

TEST(CustomCallGuide, ACallWithASideEffectIsNeverLeftOut) {
  xla::Shape scalar = xla::ShapeUtil::MakeShape(xla::F32, {1});
  for (bool has_side_effect : {false, true}) {
    xla::XlaBuilder b("effects");
    xla::CustomCall(&b, "count", {}, scalar, "", has_side_effect);
    xla::ConstantR0<float>(&b, 7);
    times = 0;
    EXPECT_EQ(numbers(run(b, {})), Floats{7});
    EXPECT_EQ(times, has_side_effect ? 1 : 0);
  }
}

void bump(void* out, const void** in) {
  EXPECT_EQ(out, in[1]);
  *reinterpret_cast<float*>(out) += *reinterpret_cast<const float*>(in[0]);
}
XLA_REGISTER_CUSTOM_CALL_TARGET_WITH_SYM("bump.in_place", bump, "Host");

TEST(CustomCallGuide, AnOutputMayLieInAnOperand) {
  xla::Shape scalar = xla::ShapeUtil::MakeShape(xla::F32, {1});
  xla::XlaBuilder b("aliasing");
  xla::XlaOp x = xla::Parameter(&b, 0, scalar, "x");
  xla::XlaOp y = xla::Parameter(&b, 1, scalar, "y");
  xla::Literal attached = xla::LiteralUtil::CreateR0<float>(1);
  xla::XlaOp sum =
      xla::CustomCall(&b, "bump.in_place", {x, y}, scalar, "", false,
                      /*output_operand_aliasing=*/{{{}, {1, {}}}}, &attached, xla::SCHEDULE_LATEST);
  xla::Tuple(&b, {sum, y});
  xla::Literal result = run(b, {{1}, {2}});
  EXPECT_EQ(numbers(result.elements()[0]), Floats{3});
  EXPECT_EQ(numbers(result.elements()[1]), Floats{2});
}

TEST(CustomCallGuide, AnUnknownTargetIsAnErrorWhenTheComputationIsCompiled) {
  xla::XlaBuilder b("unknown");
  xla::CustomCall(&b, "do_custom_cal", {}, xla::ShapeUtil::MakeShape(xla::F32, {1}));
  EXPECT_EQ(error_of(b, {}),
            "hlo: 'custom-call.1' (custom-call): expected a target that is registered for Host, "
            "got 'do_custom_cal'; near names: 'do_custom_call'");
}

TEST(CustomCallGuide, TheRegistryItself) {
  auto* registry = xla::CustomCallTargetRegistry::Global();
  EXPECT_EQ(registry->Lookup("count", "Host"), reinterpret_cast<void*>(count));
  EXPECT_EQ(registry->Lookup("count", "CUDA"), nullptr);
  bool found = false;
  for (const auto& [symbol, address] : registry->registered_symbols("Host")) {
    found = found || (symbol == "bump.in_place" && address == reinterpret_cast<void*>(bump));
  }
  EXPECT_TRUE(found);
  registry->Register("again", reinterpret_cast<void*>(count), "Host");
  registry->Register("again", reinterpret_cast<void*>(count), "Host");
  EXPECT_THROW(registry->Register("again", reinterpret_cast<void*>(bump), "Host"),
               std::invalid_argument);
}

}  // namespace arguments
