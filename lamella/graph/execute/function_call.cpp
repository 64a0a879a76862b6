// Recognizes custom calls of operators that are functions of vectors, and that no opcode is.
#include "lamella/graph/execute/function_call.h"

#include "lamella/core/error.h"
#include "lamella/graph/custom_call/operator_plan.h"

namespace lamella::hlo {

const char* function_call(const Instruction& i) {
  if (i.opcode != Opcode::CustomCall || i.operands.size() != 1 || !i.shape->is_array() ||
      !is_floating(i.shape->element_type()) || *i.shape != i.operand_shape(0)) {
    return nullptr;
  }
  for (const char* name : {"erfc", "erfinv", "exp2", "log10", "log2"}) {
    std::string target = str("aten::", name);
    if (i.text(AttributeKey::CustomCallTarget) != target) continue;
    std::vector<OperatorArgument> arguments = arguments_of_call(i, target);
    bool of_operand = arguments.size() == 1 && arguments[0].operands == std::vector<int32_t>{0};
    return of_operand ? name : nullptr;
  }
  return nullptr;
}

}  // namespace lamella::hlo
