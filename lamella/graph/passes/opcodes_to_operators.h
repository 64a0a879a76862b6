// Pass: replaces instructions that are not compiled by calls of Lamella's operators.
#pragma once
#include <functional>
#include <unordered_set>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// The operator that computes an elementwise opcode, such as "aten::add.Tensor": the one whose
// declaration has the tag `hlo:` and the opcode's name. Empty if there is none.
std::string_view operator_of(Opcode opcode);

// Finds the computations that run step by step: the given entry, and callees of control flow.
void find_steps(const Computation& computation, std::unordered_set<const Computation*>* found);

// A call on the host costs about as much as a rule on this many elements.
constexpr int64_t kFewElements = 32;

// Replaces instructions that `is_code` does not report as compiled by calls of operators, if they
// have `least` elements or more and an operator gives the same results within the accuracy of
// its kernels. Kernels are faster than the evaluator's rules, which process one element at a time.
// Returns the number of replacements.
int64_t opcodes_to_operators(Module& module, const std::function<bool(const Instruction&)>& is_code,
                             int64_t least = kFewElements);

}  // namespace lamella::hlo
