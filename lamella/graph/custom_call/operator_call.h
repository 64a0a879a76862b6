// Calls of registered operators: targets such as "aten::add.Tensor".
//
// Note [Operators in graphs]
//   A custom call whose target is the full name of an operator calls that operator's own boxed
//   kernel. Its operands and the text of its arguments are explained in operator_arguments.h.
//
//   Results. What the operator returns, and behind that each argument that it writes and does not
//   return: one array, or the tuple of all of them; lists of tensors are taken apart, tensors that
//   the call leaves undefined are left out. A result that the schema says is a written argument may
//   be declared to lie in that operand's memory (output_to_operand_aliasing); the operand itself is
//   never seen to change, for whoever else uses it has its own copy. Views are results like others.
//
//   Shapes are what the operator's Meta kernel gives; a module that declares others is refused when
//   it is compiled. Where an operator has none, or its shapes depend on values, the module's word
//   is checked against each result.
//
//   Effects. Operators that draw random numbers do so from the default generator, and those without
//   results act on the world: both must say custom_call_has_side_effect=true.
//
//   A call sees tensors over the memory of its operands, without a copy, and none of the thread's
//   layers: no gradients, no autocast, no vmap, no trace.
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

// NULL if the dispatcher knows no operator of the target's name. Throws an Error that names the
// instruction where the operator cannot be called with its operands and result.
std::unique_ptr<PreparedCall> prepare_operator_call(const Instruction& instruction);

// What a custom call of an operator must declare.
struct OperatorCallFacts {
  Shape shape;  // an array, or a tuple of arrays
  std::vector<OperandAlias> aliases;
  bool has_side_effect = false;
  std::string arguments;  // the text for backend_config, written out
};
// `op`: "aten::add.Tensor"; `arguments`: see Note [Arguments of an operator]. Throws an Error that
// begins with the operator's name: unknown ones, arguments that do not fit, operators that cannot
// tell their shapes, unless `declared` does.
OperatorCallFacts operator_call_facts(std::string_view op, std::span<const Shape> operands,
                                      std::string_view arguments, const Shape* declared = nullptr);

}  // namespace lamella::hlo
