// Custom calls for CUDA, through a fake driver: the arguments and order of a target's calls, and
// errors.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/custom_call.h"
#include "lamella/graph/execute/executor.h"
#include "lamella/graph/hlo/module.h"
#include "tests/graph/fake_cuda.h"

namespace {

using namespace lamella::hlo;
using Floats = std::vector<float>;

std::unique_ptr<Executable> compile(const std::string& lines,
                                    const std::string& platform = "CUDA") {
  CompileOptions options;
  options.platform = platform;
  return make_evaluator(parse_module("HloModule m\nENTRY main {\n" + lines + "\n}\n"), options);
}
Value run(const Executable& executable, const std::vector<Floats>& arguments) {
  std::vector<Value> values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    values.push_back(Value::uninitialized(executable.module().entry->parameters[i]->shape));
    std::memcpy(values.back().data(), arguments[i].data(), values.back().bytes());
  }
  return executable.run(values);
}
Floats numbers(const Value& value) {
  auto span = value.values<float>();
  return {span.begin(), span.end()};
}
std::string error_of(const std::string& lines, const std::vector<Floats>& arguments = {},
                     const std::string& platform = "CUDA") {
  try {
    run(*compile(lines, platform), arguments);
  } catch (const lamella::Error& e) {
    return e.what();
  }
  return "none";
}

// The first test: later ones find the driver.
TEST(CudaCall, WithoutAGpuAModuleIsNotCompiled) {
  std::string lines = "  ROOT r = f32[] constant(1)";
  std::string driver = std::getenv("LAMELLA_CUDA_DRIVER");
  setenv("LAMELLA_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  std::string begin = "hlo: expected the CUDA driver for the platform CUDA, got none: ";
  EXPECT_EQ(error_of(lines).substr(0, begin.size()), begin);
  setenv("LAMELLA_CUDA_DRIVER", driver.c_str(), 1);
  fake_set_devices(0);
  EXPECT_EQ(error_of(lines),
            "hlo: expected a GPU for the platform CUDA, got none: CUDA: cuInit: no CUDA-capable "
            "device is detected (100)");
  EXPECT_EQ(error_of(lines, {}, "TPU"), "hlo: expected the platform to be Host or CUDA, got 'TPU'");
  fake_set_devices(1);
  EXPECT_EQ(error_of(lines), "none");
  EXPECT_EQ(error_of(lines, {}, "gpu"), "none");
}

// A[i] = B[i % 128] + C[i], as work for the stream.
void add_128(void* stream, void** buffers, const char* opaque, size_t opaque_len) {
  EXPECT_EQ(std::string(opaque, opaque_len), "2048");
  auto* b = static_cast<const float*>(fake_memory(buffers[0]));
  auto* c = static_cast<const float*>(fake_memory(buffers[1]));
  auto* a = static_cast<float*>(fake_memory(buffers[2]));
  fake_enqueue(stream, [=] {
    for (int i = 0; i < 2048; ++i) a[i] = b[i % 128] + c[i];
  });
}
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(add_128, "CUDA");

TEST(CudaCall, OperandsComeFirstThenTheResult) {
  auto executable = compile(
      "  b = f32[128] parameter(0)\n  c = f32[2048] parameter(1)\n"
      "  r = f32[2048] custom-call(b, c), custom_call_target=\"add_128\", backend_config=\"2048\"\n"
      "  ROOT t = (f32[2048], f32[128]) tuple(r, b)");
  Floats b(128), c(2048), expected(2048);
  for (size_t i = 0; i < 128; ++i) b[i] = static_cast<float>(i);
  for (size_t i = 0; i < 2048; ++i) c[i] = 0.5f * static_cast<float>(i);
  for (size_t i = 0; i < 2048; ++i) expected[i] = b[i % 128] + c[i];
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(numbers(run(*executable, {b, c}).element(0)), expected);
    EXPECT_EQ(fake_blocks_in_use(), 1);
  }
  executable.reset();
  EXPECT_EQ(fake_blocks_in_use(), 0);
}

// Operand (f32[32], (f32[64], f32[128]), f32[256]), result (f32[512], f32[1024]): six buffers.
void of_tuples(void* stream, void** buffers, const char*, size_t) {
  float* at[6];
  for (int n = 0; n < 6; ++n) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffers[n]) % 256, 0u);
    at[n] = static_cast<float*>(fake_memory(buffers[n]));
  }
  fake_enqueue(stream, [=] {
    const int sizes[] = {32, 64, 128, 256};
    for (int n = 0, out = 0; n < 4; ++n) {
      for (int i = 0; i < sizes[n]; ++i) at[4][out++] = at[n][i];
    }
    for (int i = 0; i < 1024; ++i) at[5][i] = 1;  // a temporary
    for (int i = 480; i < 512; ++i) at[4][i] = at[5][i];
  });
}
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(of_tuples, "CUDA");

TEST(CudaCall, TuplesAreTakenApartInPreorder) {
  auto executable = compile(
      "  a = f32[32] parameter(0)\n  b = f32[64] parameter(1)\n  c = f32[128] parameter(2)\n"
      "  d = f32[256] parameter(3)\n  bc = (f32[64], f32[128]) tuple(b, c)\n"
      "  t = (f32[32], (f32[64], f32[128]), f32[256]) tuple(a, bc, d)\n"
      "  r = (f32[512], f32[1024]) custom-call(t), custom_call_target=\"of_tuples\"\n"
      "  ROOT first = f32[512] get-tuple-element(r), index=0");
  Floats result =
      numbers(run(*executable, {Floats(32, 2), Floats(64, 3), Floats(128, 4), Floats(256, 5)}));
  Floats expected;
  for (auto [count, value] : {std::pair(32, 2), {64, 3}, {128, 4}, {256, 5}, {32, 1}}) {
    expected.insert(expected.end(), static_cast<size_t>(count), static_cast<float>(value));
  }
  EXPECT_EQ(result, expected);
}

void in_place(void* stream, void** buffers, const char*, size_t) {
  EXPECT_EQ(buffers[1], nullptr);  // a token
  EXPECT_EQ(buffers[0], buffers[2]);
  auto* at = static_cast<float*>(fake_memory(buffers[0]));
  fake_enqueue(stream, [=] { at[0] += 1; });
}
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(in_place, "CUDA");

TEST(CudaCall, AnAliasedOutputHasThePointerOfItsOperand) {
  auto executable = compile(
      "  x = f32[1] parameter(0)\n  k = token[] after-all()\n"
      "  r = f32[1] custom-call(x, k), custom_call_target=\"in_place\", "
      "output_to_operand_aliasing={{}: (0, {})}\n"
      "  ROOT t = (f32[1], f32[1]) tuple(x, r)");
  Value result = run(*executable, {{4}});
  EXPECT_EQ(numbers(result.element(0)), Floats{4});
  EXPECT_EQ(numbers(result.element(1)), Floats{5});
}

void refuse(void*, void**, const char* opaque, size_t opaque_len, XlaCustomCallStatus* status) {
  XlaCustomCallStatusSetFailure(status, opaque, opaque_len);
}
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(refuse, "CUDA");
void fault(void*, void**, const char*, size_t) { fake_fail_synchronize(700); }
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(fault, "CUDA");

TEST(CudaCall, FailuresNameTheInstruction) {
  for (const char* version :
       {"API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED"}) {
    EXPECT_EQ(error_of(std::string("  ROOT r = f32[] custom-call(), custom_call_target=\"refuse\", "
                                   "backend_config=\"of my own\", api_version=") +
                       version),
              "hlo: 'r' (custom-call): 'refuse' failed: of my own");
  }
  EXPECT_EQ(error_of("  ROOT r = f32[0] custom-call(), custom_call_target=\"fault\""),
            "hlo: 'r' (custom-call): 'fault' failed: CUDA: cuStreamSynchronize: an illegal memory "
            "access (700)");
  EXPECT_EQ(fake_blocks_in_use(), 0);
}

void on_host(void* out, const void**) { *static_cast<float*>(out) = 1; }
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(on_host, "Host");

TEST(CudaCall, TargetsOfTheHostAreOfAnotherPlatform) {
  EXPECT_EQ(error_of("  ROOT r = f32[] custom-call(), custom_call_target=\"on_host\""),
            "hlo: 'r' (custom-call): expected a target that is registered for CUDA, got 'on_host'; "
            "it is registered for Host");
}

// Column-major on the device as well.
void copy_6(void* stream, void** buffers, const char*, size_t) {
  fake_enqueue(stream, [to = fake_memory(buffers[1]), from = fake_memory(buffers[0])] {
    std::memcpy(to, from, 6 * sizeof(float));
  });
}
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(copy_6, "CUDA");

TEST(CudaCall, LayoutsHold) {
  auto executable = compile(
      "  x = f32[2,3] parameter(0)\n  ROOT r = f32[6] custom-call(x), "
      "custom_call_target=\"copy_6\", operand_layout_constraints={f32[2,3]{0,1}}");
  EXPECT_EQ(numbers(run(*executable, {{1, 2, 3, 4, 5, 6}})), (Floats{1, 4, 2, 5, 3, 6}));
}

}  // namespace
