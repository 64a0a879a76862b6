// Instructions that no machine code is made of, as calls of Lamella's operators.
#pragma once
#include <functional>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// The operator that computes an elementwise opcode: the one whose declaration says `hlo:` and the
// opcode's name. "aten::add.Tensor"; empty where there is none.
std::string_view operator_of(Opcode opcode);

// Puts calls of operators into the place of instructions of which `is_code` does not say that
// machine code is made of them: of those of a few dozen elements and more that an operator gives
// the same numbers for, within the accuracy of its kernels. What the evaluator's rules do one
// element at a time is done by kernels so. Returns how many it replaced.
int64_t opcodes_to_operators(Module& module,
                             const std::function<bool(const Instruction&)>& is_code);

}  // namespace lamella::hlo
