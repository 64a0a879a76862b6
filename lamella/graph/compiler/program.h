// Program: the code of a region, from what is written to memory down to loops.
//
// Note [What is written to memory]
//   Results of a region are, operands of what is no loop over elements (products, loops, branches),
//   results of reductions, and what would otherwise be calculated more than once and costs more
//   than reading it. Everything else is part of the loops that read it.
//
// Note [Units]
//   What is written is a unit each, or several of one unit where they walk the same elements: then
//   one loop writes all of them, and what only that unit reads is not written at all. A unit whose
//   elements are rows may reduce them: it takes one row after the other, in phases, where a phase
//   reads what the reductions of the phases before gave. So a softmax reads its operand once.
#pragma once
#include <string>
#include <vector>

#include "lamella/graph/compiler/emitter.h"
#include "lamella/graph/execute/machine_code.h"

namespace lamella::hlo::compiler {

// Emits the function `name` of the region into the module, and says what the executor must know of
// it, but for its address.
MachineCode emit_region(llvm::Module& module, const std::string& name, const Region& region,
                        int vector_bytes);

}  // namespace lamella::hlo::compiler
