// The arguments of an operator that is called from a module: which of them are operands, and the
// text that gives the others.
//
// Note [Arguments of an operator]
//   A custom call whose target is an operator's full name, "aten::add.Tensor", has its arguments in
//   the backend_config, written like a call:
//     (%0, %1, alpha=2)
//   %0 is the first operand. Arguments are in the schema's order; those after the schema's * are
//   given by name. Omitted arguments have their defaults. Values are written like defaults in
//   schemas:
//     Tensor       %0; None where it is optional; a number, which is weak in type promotion
//     Tensor[]     [%0, %1], with None in Tensor?[]
//     int, float   2, -1, 0.5, 1e-05, inf, nan; complex and Scalar 1.5+2.0j as well
//     bool         True, False
//     str          "mean"
//     int[], ...   [1, 2]; a bare value for a list of fixed length, as int[2]
//     ScalarType   float32, bfloat16, ...; Layout strided; MemoryFormat channels_last
//     Device       cpu
//     Generator?   None: operators draw from the default generator
//   The parentheses are optional. All tensors may be omitted together: a text without any % gives
//   only the other arguments, and operands are assigned to tensors in the schema's order. A Tensor
//   takes one operand; a Tensor? takes one while there are more operands than the Tensors need; a
//   list takes the remaining operands, if it is the only list and no tensor is optional. So
//   "alpha=2" is equivalent to the text above.
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
    Plain,     // `value` is the whole argument; a tensor in it is a Python number
    Operand,   // operands[0]
    Operands,  // a list of operands; -1 stands for None
  };
  Form form = Form::Plain;
  IValue value;
  std::vector<int32_t> operands;
};

// Parses a text into one value for each argument of the schema. Throws an Error that begins with
// the operator's name for unknown names, values of a wrong type, and operands that are unused or do
// not exist.
std::vector<OperatorArgument> read_operator_arguments(const FunctionSchema& schema,
                                                      std::string_view text, size_t operand_count);
// The text that parses to these arguments. Omits keyword-only arguments that equal their default.
std::string operator_arguments_text(const FunctionSchema& schema,
                                    std::span<const OperatorArgument> arguments);

}  // namespace lamella::hlo
