// Copies of computations from one module into another.
#pragma once
#include <span>
#include <string_view>
#include <unordered_map>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Copies a computation and all computations that it calls into the module. `copied` maps each
// original to its copy, so that each is copied once. Names that the module already has get a
// number. With `share_literals` the copies point to the literals of the source module, which must
// then live as long.
Computation* copy_computation(Module& to, const Computation& from,
                              std::unordered_map<const Computation*, Computation*>& copied,
                              bool share_literals = false);
// Copies one instruction, and the computations that it calls, to the end of `into`; `operands` are
// instructions of `into`. Control dependencies are kept only if `is_whole`, which says that `into`
// has a copy of every instruction that precedes `from`, at the same index.
Instruction* copy_instruction(Module& to, Computation* into, const Instruction& from,
                              std::span<Instruction* const> operands,
                              std::unordered_map<const Computation*, Computation*>& copied,
                              bool share_literals, bool is_whole = false);

}  // namespace lamella::hlo
