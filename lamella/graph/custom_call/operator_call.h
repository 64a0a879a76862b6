// Calls of registered operators: targets such as "aten::add.Tensor".
//
// Note [Operators in graphs]
//   A custom call whose target is the full name of an operator calls that operator's own boxed
//   kernel. Its operands and the text of its arguments are explained in operator_arguments.h.
//
//   Results. They are the operator's returns, followed by each argument that it writes and does not
//   return: one array, or the tuple of all. Lists of tensors are flattened, and undefined tensors
//   are omitted. A result that is a written argument in the schema may be declared to alias that
//   operand (output_to_operand_aliasing). Other users of the operand never see it change, because
//   it is copied unless it is unique. Views are ordinary results.
//
//   Shapes. The operator's Meta kernel gives them, and a module that declares others is rejected
//   when it is compiled. If there is no Meta kernel, or shapes depend on values, the module's
//   declaration is checked against each result at run time.
//
//   Effects. Operators that draw random numbers use the default generator, and operators without
//   results exist for their side effects: both must state custom_call_has_side_effect=true.
//
//   A call gets tensors over the memory of its operands, without copies. It runs below all layers
//   of the thread: without gradients, autocast, vmap and tracing.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/graph/custom_call/call.h"
#include "lamella/graph/hlo/attribute.h"
#include "lamella/graph/hlo/shape.h"

namespace lamella::hlo {

// NULL if the target is not the name of a registered operator. Throws an Error that names the
// instruction if the operator cannot be called with its operands and result.
std::unique_ptr<PreparedCall> prepare_operator_call(const Instruction& instruction);

// The shape and attributes that a custom call of an operator must declare.
struct OperatorCallFacts {
  Shape shape;  // an array, or a tuple of arrays
  std::vector<OperandAlias> aliases;
  bool has_side_effect = false;
  std::string arguments;  // the text for backend_config, written out
};
// `op` is a name such as "aten::add.Tensor"; for `arguments` see Note [Arguments of an operator].
// Throws an Error that begins with the operator's name if the operator is unknown, if the arguments
// do not fit, or if the operator cannot infer its shapes and `declared` is null.
OperatorCallFacts operator_call_facts(std::string_view op, std::span<const Shape> operands,
                                      std::string_view arguments, const Shape* declared = nullptr);

}  // namespace lamella::hlo
