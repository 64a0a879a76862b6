// Copies of computations from one module into another.
#pragma once
#include <span>
#include <string_view>
#include <unordered_map>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Copies a computation with all that it calls into the module, and remembers in `copied` what
// became of each computation, so that each is copied once. Names that the module has already get a
// number. With `share_literals` constants are those of the other module, which then must live as
// long.
Computation* copy_computation(Module& to, const Computation& from,
                              std::unordered_map<const Computation*, Computation*>& copied,
                              bool share_literals = false);
// Copies one instruction to the end of a computation, with these operands there, and what it calls.
// What it waits for by a control dependency is kept where the computation is `is_whole`: a copy of
// all instructions before it.
Instruction* copy_instruction(Module& to, Computation* into, const Instruction& from,
                              std::span<Instruction* const> operands,
                              std::unordered_map<const Computation*, Computation*>& copied,
                              bool share_literals, bool is_whole = false);

}  // namespace lamella::hlo
