// HLO text: valid text prints back; errors have line and column.
#include <gtest/gtest.h>

#include <string>

#include "lamella/graph/hlo/module.h"

namespace {

using namespace lamella::hlo;

// One instruction a line, in a computation with these parameters.
std::string module_of(const std::string& lines) {
  return "HloModule m\n\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
         "  ROOT c = f32[] add(a, b)\n}\n\nENTRY main {\n" +
         lines + "}\n\n";
}

TEST(Text, PrintsWhatItReads) {
  for (const char* lines : {
           "  ROOT x = f32[2,3]{1,0} parameter(0)\n",
           "  ROOT x = s32[] constant(-3)\n",
           "  ROOT x = pred[] constant(true)\n",
           "  ROOT x = f32[2]{0} constant({-inf, nan})\n",
           "  ROOT x = c64[1,2]{1,0} constant({ { (1, -2), (0.5, inf) } })\n",
           "  ROOT x = (f32[], s32[2]{0}) constant(( 1, {1, 2} ))\n",
           "  ROOT x = u64[] constant(18446744073709551615)\n",
           "  ROOT x = s4[3]{0} constant({-8, 0, 7})\n",
           "  x = f32[4]{0} parameter(0)\n"
           "  s = f32[] constant(0)\n"
           "  ROOT r = f32[] reduce(x, s), dimensions={0}, to_apply=sum\n",
           "  x = f32[4]{0} parameter(0)\n"
           "  ROOT r = f32[2]{0} slice(x), slice={[0:4:2]}\n",
           "  x = f32[4]{0} parameter(0)\n"
           "  s = f32[] constant(0)\n"
           "  ROOT r = f32[11]{0} pad(x, s), padding=-1_2_2\n",
           "  x = f32[1,5,5,2]{3,2,1,0} parameter(0)\n"
           "  k = f32[3,3,2,4]{3,2,1,0} parameter(1)\n"
           "  ROOT r = f32[1,2,3,4]{3,2,1,0} convolution(x, k), window={size=3x3 stride=2x1 "
           "pad=0_0x1_1 lhs_dilate=1x1 rhs_dilate=1x2 rhs_reversal=0x1}, "
           "dim_labels=b01f_01io->b01f\n",
           "  x = f32[4]{0} parameter(0)\n"
           "  ROOT r = f32[4]{0} custom-call(x), custom_call_target=\"a \\\"b\\\"\\n\\001\", "
           "custom_call_has_side_effect=true, operand_layout_constraints={f32[4]{0}}, "
           "output_to_operand_aliasing={{}: (0, {})}, api_version=API_VERSION_STATUS_RETURNING, "
           "metadata={op_name=\"f\" source_line=3}, backend_config=\"x, {y\"\n",
           "  x = f32[4]{0} parameter(0)\n"
           "  y = f32[4]{0} negate(x)\n"
           "  ROOT r = f32[4]{0} add(x, x), control-predecessors={y}\n",
       }) {
    std::string text = module_of(lines);
    if (std::string(lines).find("lhs_dilate=1x1") != std::string::npos) {
      // What is as it would be without saying is not printed.
      std::string printed = to_string(*parse_module(text));
      EXPECT_NE(printed.find("window={size=3x3 stride=2x1 pad=0_0x1_1 rhs_dilate=1x2 "
                             "rhs_reversal=0x1}"),
                std::string::npos)
          << printed;
      continue;
    }
    EXPECT_EQ(to_string(*parse_module(text)), text);
  }
}

TEST(Text, HeaderAndSpellings) {
  auto module = parse_module(
      "HloModule deep, is_scheduled=true, input_output_alias={ {0}: (1, {}, must-alias) }, "
      "entry_computation_layout={(f32[2]{0}, f32[3]{0})->(f32[3]{0}, f32[2]{0})}, "
      "num_partitions=2\n"
      "// a comment\n"
      "ENTRY %main (a: f32[2], b: f32[3]) -> (f32[3], f32[2]) {\n"
      "  %a = f32[2]{0} parameter(0) /* one\n more */\n"
      "  %b = f32[3]{0} parameter(1)\n"
      "  ROOT %r = (f32[3]{0}, f32[2]{0}) tuple(f32[3]{0} %b, f32[2]{0} %a)\n"
      "}, execution_thread=\"main\"\n");
  EXPECT_TRUE(module->is_scheduled);
  ASSERT_EQ(module->input_output_aliases.size(), 1u);
  EXPECT_TRUE(module->input_output_aliases[0].must);
  EXPECT_EQ(module->entry->signature(), "(a: f32[2]{0}, b: f32[3]{0}) -> (f32[3]{0}, f32[2]{0})");
  std::string printed = to_string(*module, {.percent = true, .operand_shapes = true});
  EXPECT_NE(printed.find("ROOT %r = (f32[3]{0}, f32[2]{0}) tuple(f32[3]{0} %b, f32[2]{0} %a)"),
            std::string::npos)
      << printed;
  EXPECT_NE(printed.find("num_partitions=2"), std::string::npos);
  EXPECT_EQ(to_string(*parse_module(printed), {.percent = true, .operand_shapes = true}), printed);
}

TEST(Text, ComputationsMayStandInPlaceAndBelow) {
  auto module = parse_module(R"(HloModule m
ENTRY main {
  x = f32[4] parameter(0)
  s = f32[] constant(0)
  y = f32[] reduce(x, s), dimensions={0}, to_apply={
    a = f32[] parameter(0)
    b = f32[] parameter(1)
    ROOT c = f32[] maximum(a, b)
  }
  ROOT z = f32[] call(y), to_apply=later
}
later {
  ROOT a = f32[] parameter(0)
}
)");
  ASSERT_EQ(module->computations.size(), 3u);
  EXPECT_EQ(module->computations.back(), module->entry);
}

std::string error_of(const std::string& text) {
  try {
    parse_module(text);
  } catch (const lamella::Error& e) {
    return e.what();
  }
  return "none";
}

TEST(Text, Errors) {
  const std::pair<std::string, const char*> rows[] = {
      {"", "hlo: line 1, column 1: expected 'HloModule', got the end"},
      {"HloModule m", "hlo: line 1, column 12: expected a computation, got the end"},
      {"HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n",
       "hlo: line 2, column 10: expected '}' to end computation 'e', got the end"},
      {"HloModule m\nENTRY e {\n}",
       "hlo: line 2, column 10: expected computation 'e' to have an "
       "instruction"},
      {"HloModule m\nENTRY e {\n  x = f32[2] frobnicate()\n}",
       "hlo: line 3, column 14: expected an opcode, got 'frobnicate'"},
      {"HloModule m\nENTRY e {\n  x = float parameter(0)\n}",
       "hlo: line 3, column 7: expected a shape, got 'float'"},
      {"HloModule m\nENTRY e {\n  x = f32[2] negate(y)\n}",
       "hlo: line 3, column 21: expected the name of an instruction above, got 'y'"},
      {"HloModule m\nENTRY e {\n  x = f32[2] parameter(1)\n}",
       "hlo: line 2, column 10: expected computation 'e' to have parameter(0), as it has 1, got "
       "none"},
      {"HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  y = f32[2] add(x)\n}",
       "hlo: line 4, column 14: expected 'add' to have 2 operands, got 1"},
      {"HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  x = f32[2] negate(x)\n}",
       "hlo: line 4, column 3: expected instructions of different names, got 'x' again"},
      {"HloModule m\nENTRY e {\n  x = f32[2] parameter(0), shape=3\n}",
       "hlo: line 3, column 28: expected an attribute of 'parameter', got 'shape'"},
      {"HloModule m\nENTRY e {\n  x = f32[2] constant({1})\n}",
       "hlo: line 3, column 25: expected 2 values in dimension 0 of f32[2], got 1"},
      {"HloModule m\nENTRY e {\n  x = f32[2] constant({1, 2, 3})\n}",
       "hlo: line 3, column 28: expected 2 values in dimension 0 of f32[2], got more"},
      {"HloModule m\nENTRY e {\n  x = s8[] constant(200)\n}",
       "hlo: line 3, column 21: expected a number that fits for s8, got '200'"},
      {"HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  y = f32[2] call(x), to_apply=f\n}",
       "hlo: line 4, column 32: expected the name of a computation, got 'f'"},
      {"HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  y = f32[2] call(x), to_apply=e\n}",
       "hlo: expected no computation to call itself, got 'e'"},
      {"HloModule m\nENTRY e {\n  x = f32[2] parameter(99999999999)\n}",
       "hlo: line 3, column 24: expected the number of a parameter, got 99999999999"},
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(error_of(text), expected) << text;
}

TEST(Text, NamesOfComputations) {
  Module module("m");
  EXPECT_EQ(module.free_computation_name("f"), "f");
  module.add_computation("f");
  module.add_computation("f.2");
  for (const char* expected : {"f.1", "f.3", "f.4"}) {
    std::string name = module.free_computation_name("f");
    EXPECT_EQ(name, expected);
    module.add_computation(name);
  }
  EXPECT_EQ(module.free_computation_name("f.2"), "f.2.1");
  EXPECT_EQ(module.free_computation_name("g"), "g");
}

}  // namespace
