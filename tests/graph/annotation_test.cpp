// Annotations: custom calls that do nothing on a single device.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/graph/execute/executor.h"
#include "lamella/graph/hlo/module.h"

namespace {

using namespace lamella::hlo;

std::unique_ptr<Executable> compile(const std::string& lines) {
  return make_evaluator(parse_module("HloModule m\nENTRY main {\n" + lines + "\n}\n"), {});
}

TEST(Annotation, GivesItsOperand) {
  for (const char* target :
       {"LayoutConstraint", "MoveToDevice", "MoveToHost", "Pin", "SPMDFullToShardShape",
        "SPMDShardToFullShape", "Sharding", "Unpin", "annotate_device_placement"}) {
    auto executable = compile(std::string("a = f32[2,3]{1,0} parameter(0)\n"
                                          "ROOT b = f32[2,3]{0,1} custom-call(a), "
                                          "custom_call_target=\"") +
                              target + "\"");
    Value argument = Value::uninitialized(executable->module().entry->parameters[0]->shape);
    for (size_t i = 0; i < 6; ++i) argument.values<float>()[i] = static_cast<float>(i);
    Value result = executable->run({&argument, 1});
    auto values = result.values<float>();
    EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
              (std::vector<float>{0, 1, 2, 3, 4, 5}))
        << target;
  }
}

TEST(Annotation, ATupleGoesThrough) {
  auto executable = compile(
      "a = f32[2]{0} parameter(0)\n"
      "t = (f32[2]{0}, f32[2]{0}) tuple(a, a)\n"
      "ROOT b = (f32[2]{0}, f32[2]{0}) custom-call(t), custom_call_target=\"Sharding\"");
  Value argument = Value::zeros(executable->module().entry->parameters[0]->shape);
  EXPECT_EQ(executable->run({&argument, 1}).size(), 2u);
}

TEST(Annotation, MemoryIsZeros) {
  auto executable =
      compile("ROOT b = s32[4]{0} custom-call(), custom_call_target=\"AllocateBuffer\"");
  Value result = executable->run({});
  for (int32_t value : result.values<int32_t>()) EXPECT_EQ(value, 0);
}

TEST(Annotation, OnePartition) {
  try {
    compile(
        "a = f32[8]{0} parameter(0)\n"
        "ROOT b = f32[4]{0} custom-call(a), custom_call_target=\"SPMDFullToShardShape\"");
    FAIL() << "expected an error";
  } catch (const lamella::Error& e) {
    EXPECT_STREQ(e.what(),
                 "hlo: 'b' (custom-call): expected 'SPMDFullToShardShape' to give its operand's "
                 "shape f32[8], since a module runs as one partition, got f32[4]");
  }
}

}  // namespace
