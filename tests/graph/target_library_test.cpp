// Custom-call targets that are registered and removed with their library.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/custom_call.h"
#include "lamella/graph/execute/executor.h"
#include "lamella/graph/hlo/module.h"

namespace {

using namespace lamella::hlo;

std::unique_ptr<Executable> compile() {
  return make_evaluator(
      parse_module("HloModule m\nENTRY main {\n"
                   "  ROOT r = f32[] custom-call(), custom_call_target=\"of_a_library\"\n}\n"));
}
float run(const Executable& executable) { return executable.run({}).values<float>()[0]; }
bool is_loaded() {
  void* handle = dlopen(LAMELLA_TEST_TARGET_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

TEST(TargetLibrary, ACompiledModuleKeepsItLoaded) {
  EXPECT_THROW(compile(), lamella::Error);
  void* handle = dlopen(LAMELLA_TEST_TARGET_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  // The second registration of the name fails, and the loader of the library gets the error.
  EXPECT_EQ(lamella_raise_deferred(), LAMELLA_ERROR);
  std::string text = lamella_error_text();
  EXPECT_NE(text.find("expected the custom-call target 'of_a_library' to be registered for Host "
                      "once; registered at "),
            std::string::npos)
      << text;
  auto executable = compile();
  EXPECT_EQ(run(*executable), 42);
  dlclose(handle);
  EXPECT_TRUE(is_loaded());
  EXPECT_EQ(run(*executable), 42);
  executable.reset();
  EXPECT_FALSE(is_loaded());
  // Its registrations went with it.
  EXPECT_EQ(lamella_find_custom_call_target("of_a_library", "Host"), nullptr);
  EXPECT_THROW(compile(), lamella::Error);
  // And it may come again.
  handle = dlopen(LAMELLA_TEST_TARGET_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr);
  EXPECT_EQ(lamella_raise_deferred(), LAMELLA_ERROR);
  EXPECT_EQ(run(*compile()), 42);
  dlclose(handle);
}

// Each call sees its own operands and result.
void twice(void* out, const void** in, XlaCustomCallStatus* status) {
  float x = *static_cast<const float*>(in[0]);
  if (x < 0) return XlaCustomCallStatusSetFailure(status, "negative", 8);
  *static_cast<float*>(out) = 2 * x;
}
LAMELLA_REGISTER_CUSTOM_CALL_TARGET(twice, "Host");

TEST(TargetLibrary, ThreadsRunOneExecutableAtOnce) {
  std::string text = "HloModule m\nENTRY main {\n  v0 = f32[] parameter(0)\n";
  for (int i = 1; i <= 20; ++i) {
    std::string n = std::to_string(i);
    text += (i == 20 ? "  ROOT v" : "  v") + n + " = f32[] custom-call(v" + std::to_string(i - 1) +
            "), custom_call_target=\"twice\", api_version=API_VERSION_STATUS_RETURNING\n";
  }
  auto executable = make_evaluator(parse_module(text + "}\n"));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        Value argument = Value::uninitialized(executable->module().entry->parameters[0]->shape);
        auto x = static_cast<float>(t * 1000 + i);
        argument.values<float>()[0] = i % 7 == 0 ? -1 : x;
        if (i % 7 == 0) {
          EXPECT_THROW(executable->run(std::span(&argument, 1)), lamella::Error);
        } else {
          EXPECT_EQ(executable->run(std::span(&argument, 1)).values<float>()[0], x * (1 << 20));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
