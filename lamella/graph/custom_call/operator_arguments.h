// The arguments of an operator that is called from a module: which are operands, and the text that
// says the others.
//
// Note [Arguments of an operator]
//   A custom call whose target is an operator's full name, "aten::add.Tensor", has its arguments in
//   the backend_config, as a call would write them:
//     (%0, %1, alpha=2)
//   %0 is the first operand. Arguments stand in the schema's order, those behind the schema's * by
//   name; what is left out has its default. Values are written as schemas write defaults:
//     Tensor       %0; None where it is optional; a number, which is weak in type promotion
//     Tensor[]     [%0, %1], with None in Tensor?[]
//     int, float   2, -1, 0.5, 1e-05, inf, nan; complex and Scalar 1.5+2.0j as well
//     bool         True, False
//     str          "mean"
//     int[], ...   [1, 2]; a bare value for a list of fixed length, as int[2]
//     ScalarType   float32, bfloat16, ...; Layout strided; MemoryFormat channels_last
//     Device       cpu
//     Generator?   None: operators draw from the default generator
//   Parentheses may be left out, and so may all tensors: a text without any % names the other
//   arguments alone, and operands are the tensors in the schema's order. A Tensor takes one; a
//   Tensor? takes one as long as there are more than the Tensors need; a list takes what is left,
//   if it is the only one and nothing is optional. So "alpha=2" says the same as the text above.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/core/ivalue.h"
#include "lamella/schema/schema.h"

namespace lamella::hlo {

struct OperatorArgument {
  enum class Form : uint8_t {
    Plain,     // `value` is all; a tensor there is a number
    Operand,   // operands[0]
    Operands,  // a list; -1 stands for None
  };
  Form form = Form::Plain;
  IValue value;
  std::vector<int32_t> operands;
};

// One for each argument of the schema. Throws an Error that begins with the operator's name:
// unknown names, values of another type, operands that are not used or not there.
std::vector<OperatorArgument> read_operator_arguments(const FunctionSchema& schema,
                                                      std::string_view text, size_t operand_count);
// The text that reads back as these arguments; keyword-only ones at their default are left out.
std::string operator_arguments_text(const FunctionSchema& schema,
                                    std::span<const OperatorArgument> arguments);

}  // namespace lamella::hlo
