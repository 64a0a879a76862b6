// Calls of registered operators: targets such as "aten::add.Tensor".
#pragma once
#include <memory>

#include "lamella/graph/custom_call/call.h"

namespace lamella::hlo {

// NULL if the dispatcher knows no operator of the target's name. Throws an Error that names the
// instruction where the operator cannot be called with its operands and result.
std::unique_ptr<PreparedCall> prepare_operator_call(const Instruction& instruction);

}  // namespace lamella::hlo
